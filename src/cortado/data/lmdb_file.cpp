#include "cortado/data/lmdb_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cortado/data/image.h"

namespace cortado {

namespace {

// A page begins with its number (8 bytes), 2 bytes unused, flags (2), and the ends of its list of nodes and
// of its free space (2 each), or, where it is the first of several that hold one value, their number (4).
constexpr uint64_t page_header = 16, node_header = 8, meta_bytes = 152, shortest_page = 512,
                   longest_page = 65536;
constexpr uint64_t first_tree_page = 2;  // the meta pages come before it
constexpr int deepest_tree = 32;         // as in liblmdb
enum PageKind : uint64_t { branch = 1, leaf_page = 2, overflow = 4, page_kinds = 0x6F };
enum NodeKind : uint64_t { plain_value = 0, big_value = 1, sub_database = 2 };

uint64_t number_at(std::span<const uint8_t> bytes, uint64_t at, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, size);
  return value;
}

}  // namespace

// One of the two meta pages: a page header, then magic, version, address, map size, two trees of 48 bytes (of
// free pages, which begins with the page size, and of records), last page, transaction.
struct LmdbFile::Meta {
  bool valid = false;
  uint64_t version = 0, page_bytes = 0, flags = 0, depth = 0, entries = 0, root = 0, last_page = 0,
           transaction = 0;
};

LmdbFile::LmdbFile(std::string database, const std::string& path)
    : database_(std::move(database)), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  try {
    struct stat status {};
    if (file_ < 0 || fstat(file_, &status) != 0)
      throw UserError(fmt::format("cannot open database {}: {}", database_, std::strerror(errno)));
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    const Meta first = meta(0);
    if (!first.valid)
      throw UserError(fmt::format("{} is not an LMDB database; make one with `cortado data`", database_));
    const Meta second = meta(first.page_bytes);
    open_tree(second.valid && second.transaction > first.transaction ? second : first);
    if (!second.valid || second.page_bytes != page_bytes_) corrupt(1, "it is no meta page");
  } catch (...) {
    if (file_ >= 0) close(file_);
    throw;
  }
}

LmdbFile::~LmdbFile() { close(file_); }

LmdbFile::Meta LmdbFile::meta(uint64_t offset) const {
  constexpr uint64_t lmdb_magic = 0xBEEFC0DE;
  std::array<uint8_t, meta_bytes> bytes{};
  if (read(offset, bytes)) return {};
  return {.valid = number_at(bytes, 16, 4) == lmdb_magic,
          .version = number_at(bytes, 20, 4),
          .page_bytes = number_at(bytes, 40, 4),
          .flags = number_at(bytes, 92, 2),
          .depth = number_at(bytes, 94, 2),
          .entries = number_at(bytes, 120, 8),
          .root = number_at(bytes, 128, 8),
          .last_page = number_at(bytes, 136, 8),
          .transaction = number_at(bytes, 144, 8)};
}

void LmdbFile::open_tree(const Meta& meta) {
  if (meta.version != 1)
    throw UserError(
        fmt::format("database {} has version {} of LMDB's format; 1 is read", database_, meta.version));
  if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < shortest_page ||
      meta.page_bytes > longest_page)
    corrupt(0, fmt::format("it tells of pages of {} bytes", meta.page_bytes));
  if (meta.last_page >= file_bytes_ / meta.page_bytes)
    throw UserError(
        fmt::format("database {} is truncated: it has {} bytes, {} pages of {} are needed; copy "
                    "or make it again",
                    database_, file_bytes_, meta.last_page, meta.page_bytes));
  if (meta.flags != 0)
    throw UserError(
        fmt::format("database {} has keys or values of a kind (flags {:#x}) that Caffe's have "
                    "not; make it again with `cortado data`",
                    database_, meta.flags));
  page_bytes_ = meta.page_bytes;
  last_page_ = meta.last_page;
  entries_ = meta.entries;
  root_ = meta.root;
  depth_ = static_cast<int>(meta.depth);
  if (entries_ > 0 && (depth_ < 1 || depth_ > deepest_tree))
    corrupt(0, fmt::format("it tells of a tree of {} levels", depth_));
  // A record takes a list entry and a node in some page.
  if (entries_ > file_bytes_ / node_header)
    corrupt(0, fmt::format("it tells of {} records in {} bytes", entries_, file_bytes_));
}

void LmdbFile::corrupt(uint64_t page, std::string_view what) const {
  throw UserError(
      fmt::format("database {} is corrupt at page {}: {}; copy or make it again", database_, page, what));
}

const char* LmdbFile::read(uint64_t offset, std::span<uint8_t> to) const {
  while (!to.empty()) {
    const ssize_t count = pread(file_, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::strerror(errno);
    if (count == 0) return "the file ends before it";
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return nullptr;
}

LmdbPage LmdbFile::page(uint64_t number, bool leaf) const {
  if (number < first_tree_page || number > last_page_)
    corrupt(number, fmt::format("pages 2 to {} can hold records", last_page_));
  LmdbPage page;
  page.number = number;
  page.bytes.resize(page_bytes_);
  if (const char* reason = read(number * page_bytes_, page.bytes)) corrupt(number, reason);
  if (number_at(page.bytes, 0, 8) != number) corrupt(number, "it bears another page's number");
  if ((number_at(page.bytes, 10, 2) & page_kinds) != (leaf ? leaf_page : branch))
    corrupt(number, leaf ? "it is no leaf" : "it is no branch");
  const uint64_t list_end = number_at(page.bytes, 12, 2), free_end = number_at(page.bytes, 14, 2);
  if (list_end <= page_header || list_end % 2 != 0 || list_end > free_end || free_end > page_bytes_)
    corrupt(number, "its list of nodes does not lie in it");
  page.nodes.resize((list_end - page_header) / 2);
  for (size_t i = 0; i < page.nodes.size(); ++i) {
    const uint64_t at = number_at(page.bytes, page_header + 2 * i, 2);
    if (at < free_end || at + node_header > page_bytes_)
      corrupt(number, fmt::format("node {} does not lie in it", i));
    read_node(page, at, leaf, page.nodes[i]);
  }
  return page;
}

// A node: 4 bytes and flags (2), which are a value's size and kind, or together a child; the key's size (2);
// key; value, or where that is big, the number (8) of its first page.
void LmdbFile::read_node(const LmdbPage& page, uint64_t at, bool leaf, LmdbNode& node) const {
  const std::span<const uint8_t> bytes = page.bytes;
  const uint64_t flags = number_at(bytes, at + 4, 2), key_bytes = number_at(bytes, at + 6, 2);
  const uint64_t key_at = at + node_header, value_at = key_at + key_bytes;
  if (value_at > page_bytes_) corrupt(page.number, "a key does not lie in it");
  node.key = {reinterpret_cast<const char*>(bytes.data() + key_at), key_bytes};
  if (!leaf) {
    node.page = number_at(bytes, at, 4) | flags << 32;
    return;
  }
  if (flags & sub_database) corrupt(page.number, "it holds a database in a database, which Caffe's do not");
  if (flags != plain_value && flags != big_value)
    corrupt(page.number, fmt::format("a record is of an unknown kind ({:#x})", flags));
  node.value_bytes = number_at(bytes, at, 4);
  const uint64_t stored = flags == big_value ? sizeof(uint64_t) : node.value_bytes;
  if (stored > page_bytes_ - value_at) corrupt(page.number, "a value does not lie in it");
  if (flags == big_value)
    node.page = number_at(bytes, value_at, stored);
  else
    node.value = bytes.subspan(value_at, stored);
}

std::vector<uint8_t> LmdbFile::value(const LmdbNode& node) const {
  if (node.page == 0) return {node.value.begin(), node.value.end()};
  auto fail = [&](std::string_view what) {
    throw BrokenRecord(
        fmt::format("its value is lost: at page {} the database is corrupt: {}", node.page, what));
  };
  const uint64_t pages = (page_header + node.value_bytes + page_bytes_ - 1) / page_bytes_;
  if (node.page < first_tree_page || node.page > last_page_ || pages > last_page_ - node.page + 1)
    fail(fmt::format("{} pages of a value would begin there, of {} in all", pages, last_page_));
  std::array<uint8_t, page_header> header{};
  if (const char* reason = read(node.page * page_bytes_, header)) fail(reason);
  if (number_at(header, 0, 8) != node.page || (number_at(header, 10, 2) & page_kinds) != overflow ||
      number_at(header, 12, 4) < pages)
    fail("no value of this size begins there");
  std::vector<uint8_t> value(node.value_bytes);
  if (const char* reason = read(node.page * page_bytes_ + page_header, value)) fail(reason);
  return value;
}

}  // namespace cortado
