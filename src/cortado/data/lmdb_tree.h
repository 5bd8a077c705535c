#pragma once

#include <optional>

#include "cortado/data/lmdb_file.h"

namespace cortado {

// The records of an LMDB file in the order of their keys. It stands at one leaf, and walks from leaf to leaf.
// Only one thread may use it.
//
// A branch's keys bound those below it, and a child must keep to its bounds; so no page can be met twice, and
// what was walked over was in order.
class LmdbTree {
 public:
  explicit LmdbTree(const LmdbFile& file) : file_(file), size_(static_cast<int64_t>(file.entries())) {}

  // The node of record `index`, until the next call. Throws UserError naming database and page.
  const LmdbNode& find(int64_t index);

 private:
  enum class End { first, last };
  struct Level {
    LmdbPage page;
    size_t index = 0;                  // of the child that the next level is
    std::string low;                   // no key is lower
    std::optional<std::string> above;  // all keys are lower
  };

  int64_t leaf_size() const { return static_cast<int64_t>(levels_.back().page.nodes.size()); }
  int64_t leaf_end() const { return first_ + leaf_size(); }
  void go_near(int64_t index);
  void go_to(End end);
  void step(int direction);
  void descend(End end);
  void push(uint64_t number, std::string low, std::optional<std::string> above, End end);
  void check_keys(const Level& level, bool leaf) const;
  void check_position() const;

  const LmdbFile& file_;
  int64_t size_;
  std::vector<Level> levels_;  // from the root to the leaf; empty: it stands nowhere
  int64_t first_ = 0;          // the leaf's first record
};

}  // namespace cortado
