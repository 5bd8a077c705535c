#include "cortado/data/leveldb_files.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cortado/base/crc32c.h"
#include "cortado/data/byte_cursor.h"
#include "cortado/data/snappy.h"

namespace cortado::leveldb_files {
namespace {

void check_sum(uint32_t masked, std::string_view kind_and_bytes) {
  const uint32_t rotated = masked - 0xa282ead8u, sum = rotated >> 17 | rotated << 15;
  if (crc32c(kind_and_bytes) != sum) throw UserError("a checksum does not fit its bytes");
}

// The last byte of a key in a table, and the first of a write in a log.
enum Kind : uint8_t { deletion = 0, value = 1 };

Kind kind_of(uint64_t number) {
  if (number > value) throw UserError(fmt::format("a write is of the unknown kind {}", number));
  return static_cast<Kind>(number);
}

// The file, read where it is asked: nothing of it stays.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat facts {};
    if (file_ < 0) throw UserError("it cannot be opened");
    if (fstat(file_, &facts) != 0) {
      close(file_);
      throw UserError("it cannot be opened");
    }
    size_ = static_cast<uint64_t>(facts.st_size);
  }
  ~OpenFile() { close(file_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() const { return size_; }
  std::string read(uint64_t offset, uint64_t count) const {
    if (offset > size_ || count > size_ - offset) throw UserError("a block lies beyond its end");
    std::string bytes(count, '\0');
    for (uint64_t done = 0; done < count;) {
      const ssize_t got = pread(file_, bytes.data() + done, count - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw UserError("it cannot be read");
      done += static_cast<uint64_t>(got);
    }
    return bytes;
  }

 private:
  int file_;
  uint64_t size_ = 0;
};

BlockHandle read_handle(ByteCursor& bytes) {
  BlockHandle handle;
  handle.offset = bytes.varint();
  handle.size = bytes.varint();
  return handle;
}

std::string block_of(const OpenFile& file, const BlockHandle& handle) {
  constexpr uint64_t trailer = 5;  // kind, checksum
  if (handle.size > file.size()) throw UserError("a block lies beyond its end");
  std::string bytes = file.read(handle.offset, handle.size + trailer);
  const std::string_view all = bytes;
  check_sum(static_cast<uint32_t>(ByteCursor(all.substr(handle.size + 1)).fixed(4)),
            all.substr(0, handle.size + 1));
  const char compression = bytes[handle.size];
  bytes.resize(handle.size);
  if (compression == 1) return uncompressed_snappy(bytes);
  if (compression != 0)
    throw UserError(
        fmt::format("a block is compressed in way {}, which is not known; write it with Snappy's "
                    "or without compression",
                    static_cast<int>(compression)));
  return bytes;
}

}  // namespace

void for_each_log_record(std::string_view log, const std::function<void(std::string_view)>& visit) {
  constexpr size_t block = 32768, header = 7;
  enum : uint8_t { full = 1, first = 2, middle = 3, last = 4 };
  std::string begun;
  bool open = false;  // begun goes on
  for (size_t at = 0; at + header <= log.size();) {
    const size_t left = block - at % block;
    if (left < header) {
      at += left;
      continue;
    }
    ByteCursor fragment(log.substr(at));
    const auto sum = static_cast<uint32_t>(fragment.fixed(4));
    const uint64_t size = fragment.fixed(2);
    if (sum == 0 && size == 0) return;  // what was allocated before it was written
    if (at + header + size > log.size()) return;
    if (header + size > left) throw UserError("a record of its log crosses a block");
    const auto kind = static_cast<uint8_t>(fragment.slice(1)[0]);
    const std::string_view bytes = fragment.slice(size);
    check_sum(sum, log.substr(at + header - 1, size + 1));
    if (kind < full || kind > last) throw UserError("a record of its log is of an unknown kind");
    if ((kind == middle || kind == last) && !open) throw UserError("a record of its log has no beginning");
    if (kind == full || kind == first) begun.clear();
    begun += bytes;
    open = kind == first || kind == middle;
    if (!open) visit(begun);
    at += header + size;
  }
}

void apply_manifest_edit(std::string_view edit, Manifest& manifest) {
  enum : uint64_t {
    comparator = 1,
    log_number = 2,
    next_file = 3,
    last_sequence = 4,
    compact_pointer = 5,
    deleted_file = 6,
    new_file = 7,
    previous_log = 9
  };
  for (ByteCursor bytes(edit); !bytes.empty();) {
    const uint64_t tag = bytes.varint();
    if (tag == comparator) {
      const std::string_view name = bytes.prefixed();
      if (name != "leveldb.BytewiseComparator")
        throw UserError(fmt::format("its keys are in the order '{}', not that of their bytes", name));
    } else if (tag == log_number) {
      manifest.log = bytes.varint();
    } else if (tag == previous_log) {
      manifest.previous_log = bytes.varint();
    } else if (tag == next_file || tag == last_sequence) {
      bytes.varint();
    } else if (tag == compact_pointer) {
      bytes.varint(), bytes.prefixed();
    } else if (tag == deleted_file) {
      bytes.varint();
      manifest.tables.erase(bytes.varint());
    } else if (tag == new_file) {
      bytes.varint();
      manifest.tables.insert(bytes.varint());
      bytes.varint(), bytes.prefixed(), bytes.prefixed();  // its size, first and last key
    } else {
      throw UserError(fmt::format("it has the unknown field {}", tag));
    }
  }
}

Manifest read_manifest(std::string_view bytes) {
  Manifest manifest;
  for_each_log_record(bytes, [&](std::string_view edit) { apply_manifest_edit(edit, manifest); });
  return manifest;
}

void for_each_write(std::string_view batch, const std::function<void(const Write&)>& visit) {
  ByteCursor bytes(batch);
  Write write{.sequence = bytes.fixed(8)};
  for (uint64_t count = bytes.fixed(4); count > 0; --count, ++write.sequence) {
    write.deletes = kind_of(bytes.fixed(1)) == deletion;
    write.key = bytes.prefixed();
    write.value = write.deletes ? std::string_view{} : bytes.prefixed();
    visit(write);
  }
}

std::vector<BlockHandle> data_blocks(const std::string& path) {
  constexpr uint64_t footer_bytes = 48, magic = 0xdb4775248b80fb57u;
  const OpenFile file(path);
  if (file.size() < footer_bytes) throw UserError("it is too short for a table");
  const std::string footer = file.read(file.size() - footer_bytes, footer_bytes);
  if (ByteCursor(std::string_view(footer).substr(footer_bytes - 8)).fixed(8) != magic)
    throw UserError("it does not end as a table does");
  ByteCursor handles(footer);
  read_handle(handles);  // of filters
  std::vector<BlockHandle> blocks;
  uint64_t total = 0;
  for_each_entry(block_of(file, read_handle(handles)), [&](const std::string&, std::string_view handle) {
    ByteCursor bytes(handle);
    blocks.push_back(read_handle(bytes));
    if (blocks.back().size > file.size() || (total += blocks.back().size) > file.size())
      throw UserError("its blocks overlap");
  });
  return blocks;
}

std::string read_block(const std::string& path, const BlockHandle& handle) {
  return block_of(OpenFile(path), handle);
}

void for_each_entry(std::string_view block,
                    const std::function<void(const std::string&, std::string_view)>& visit) {
  constexpr uint64_t number = 4;  // bytes
  if (block.size() < number) throw UserError("a block is too short");
  const uint64_t restarts = ByteCursor(block.substr(block.size() - number)).fixed(4);
  if (restarts > (block.size() - number) / number) throw UserError("a block is too short for its index");
  // Caffe's are paths of images. Entries that share their keys would ask for more memory than the file has.
  constexpr uint64_t longest_key = 4096;
  std::string key;
  for (ByteCursor entries(block.substr(0, block.size() - (restarts + 1) * number)); !entries.empty();) {
    const uint64_t shared = entries.varint(), own = entries.varint(), value_bytes = entries.varint();
    if (shared > key.size()) throw UserError("a key begins as none before it");
    if (shared + own > longest_key || own > longest_key)
      throw UserError(fmt::format("a key is longer than {} bytes", longest_key));
    key.resize(shared);
    key += entries.slice(own);
    visit(key, entries.slice(value_bytes));
  }
}

Write write_of(std::string_view table_key, std::string_view value) {
  constexpr size_t trailer = 8;
  if (table_key.size() < trailer) throw UserError("a key is too short");
  const size_t size = table_key.size() - trailer;
  const uint64_t number = ByteCursor(table_key.substr(size)).fixed(8);
  return {.sequence = number >> 8,
          .deletes = kind_of(number & 0xFF) == deletion,
          .key = table_key.substr(0, size),
          .value = value};
}

}  // namespace cortado::leveldb_files
