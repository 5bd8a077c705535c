#pragma once

#include <optional>

#include "cortado/data/lmdb_file.h"

namespace cortado {

// The records of an LMDB file in the order of their keys. It walks from leaf to leaf and remembers which
// records each leaf has, so that a record it has been at is found again by reading one page. Only one thread
// may use it.
//
// A branch's keys bound those below it, and a child must keep to its bounds; so no page can be met twice, and
// what was walked over was in order.
class LmdbTree {
 public:
  explicit LmdbTree(const LmdbFile& file) : file_(file), size_(static_cast<int64_t>(file.entries())) {}

  // The node of record `index`, until the next call. Throws UserError naming database and page.
  const LmdbNode& find(int64_t index);

 private:
  struct Level {
    LmdbPage page;
    size_t index = 0;                  // of the child that the next level is
    std::string low;                   // no key is lower
    std::optional<std::string> above;  // all keys are lower
  };
  struct Leaf {
    int64_t first = 0;  // record
    uint64_t page = 0;
  };

  // Of the present leaf.
  const std::vector<LmdbNode>& records() const {
    return first_ == last_walked() ? levels_.back().page.nodes : read_again_.nodes;
  }
  bool has(int64_t index) const {
    return !leaves_.empty() && index >= first_ && index < first_ + std::ssize(records());
  }
  int64_t last_walked() const { return leaves_.back().first; }
  void walk();
  void go_back(int64_t index);
  void descend();
  void push(uint64_t number, std::string low, std::optional<std::string> above);
  void check_keys(const Level& level, bool leaf) const;
  void check_position() const;

  const LmdbFile& file_;
  int64_t size_;
  std::vector<Level> levels_;  // from the root to the leaf that was walked to last
  std::vector<Leaf> leaves_;   // that were walked over, in their order
  int64_t walked_ = 0;         // records in them
  int64_t first_ = 0;          // the present leaf's first record
  LmdbPage read_again_;        // the present leaf, where it is not the last of leaves_
};

}  // namespace cortado
