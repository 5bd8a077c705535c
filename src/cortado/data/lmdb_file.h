#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cortado {

// An entry of a page of an LMDB file: in a leaf a record, in a branch a child and its lowest key. The views
// are of the page's bytes.
struct LmdbNode {
  std::string_view key;            // in a branch's first node without meaning
  uint64_t page = 0;               // the child's, or the first of those that hold the value; 0: none
  std::span<const uint8_t> value;  // where it stands in the leaf itself
  uint64_t value_bytes = 0;
};

struct LmdbPage {
  uint64_t number = 0;
  std::vector<uint8_t> bytes;
  std::vector<LmdbNode> nodes;  // at least one

  LmdbPage() = default;
  LmdbPage(LmdbPage&&) = default;
  LmdbPage& operator=(LmdbPage&&) = default;
};

// The pages of an LMDB file (data.mdb; LMDB 0.9 on 64-bit machines of little-endian order). liblmdb maps such
// a file and trusts it: one wrong byte ends the process. Here every number is checked before it is used, when
// its page is read; only the meta pages are read at once. Nothing is mapped, so that a file that shrinks, or
// a disk that fails, is an error and no signal. Any thread may read.
class LmdbFile {
 public:
  // `database` is for messages. Throws UserError: cannot be opened, no LMDB, truncated, with features that
  // Caffe's databases do not have.
  LmdbFile(std::string database, const std::string& path);
  ~LmdbFile();
  LmdbFile(const LmdbFile&) = delete;

  uint64_t entries() const { return entries_; }  // 0: there is no root
  uint64_t root() const { return root_; }
  int depth() const { return depth_; }  // levels of pages from the root to the leaves

  // Throws UserError naming database and page unless that page is a branch, or a leaf, whose nodes lie in it.
  LmdbPage page(uint64_t number, bool leaf) const;
  // The value of a leaf's node. Throws BrokenRecord naming the page.
  std::vector<uint8_t> value(const LmdbNode& node) const;

  [[noreturn]] void corrupt(uint64_t page, std::string_view what) const;

 private:
  struct Meta;
  Meta meta(uint64_t offset) const;
  void open_tree(const Meta& meta);
  // Fills `to` from the file; nullptr, or why it is not filled.
  const char* read(uint64_t offset, std::span<uint8_t> to) const;
  void read_node(const LmdbPage& page, uint64_t at, bool leaf, LmdbNode& node) const;

  std::string database_;
  int file_;
  uint64_t file_bytes_ = 0, page_bytes_ = 0, last_page_ = 0, entries_ = 0, root_ = 0;
  int depth_ = 0;
};

}  // namespace cortado
