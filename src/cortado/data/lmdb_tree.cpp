#include "cortado/data/lmdb_tree.h"

#include <algorithm>
#include <fmt/format.h>

namespace cortado {

const LmdbNode& LmdbTree::find(int64_t index) {
  try {
    while (index >= walked_) walk();
    if (!has(index)) go_back(index);
  } catch (...) {
    levels_.clear();
    leaves_.clear();
    walked_ = first_ = 0;
    throw;
  }
  return records()[index - first_];
}

// Goes to the leaf after those that were walked over.
void LmdbTree::walk() {
  if (levels_.empty()) {
    push(file_.root(), {}, std::nullopt);
  } else {
    levels_.pop_back();
    while (!levels_.empty() && levels_.back().index + 1 == levels_.back().page.nodes.size())
      levels_.pop_back();
    if (levels_.empty())
      file_.corrupt(file_.root(),
                    fmt::format("the tree below it has not the {} records of the meta page", size_));
    ++levels_.back().index;
  }
  descend();
  leaves_.push_back({walked_, levels_.back().page.number});
  first_ = walked_;
  walked_ += std::ssize(records());
  check_position();
}

// Reads the leaf of a record once more.
void LmdbTree::go_back(int64_t index) {
  const auto after = std::ranges::upper_bound(leaves_, index, {}, &Leaf::first);
  const Leaf& leaf = *std::prev(after);
  first_ = leaf.first;
  if (after == leaves_.end()) return;
  read_again_ = file_.page(leaf.page, true);
  if (const int64_t known = after->first - first_; std::ssize(records()) != known)
    file_.corrupt(leaf.page, fmt::format("it had {} records when it was read before", known));
}

// Goes to the first leaf below the deepest level's child.
void LmdbTree::descend() {
  while (std::ssize(levels_) < file_.depth()) {
    const Level& parent = levels_.back();
    const std::vector<LmdbNode>& nodes = parent.page.nodes;
    const size_t child = parent.index;
    std::string low = child > 0 ? std::string(nodes[child].key) : parent.low;
    std::optional<std::string> above = parent.above;
    if (child + 1 < nodes.size()) above = nodes[child + 1].key;
    push(nodes[child].page, std::move(low), std::move(above));
  }
}

void LmdbTree::push(uint64_t number, std::string low, std::optional<std::string> above) {
  const bool leaf = std::ssize(levels_) + 1 == file_.depth();
  levels_.push_back({file_.page(number, leaf), 0, std::move(low), std::move(above)});
  check_keys(levels_.back(), leaf);
}

void LmdbTree::check_keys(const Level& level, bool leaf) const {
  std::string_view last = level.low;
  for (size_t i = leaf ? 0 : 1; i < level.page.nodes.size(); ++i) {
    const std::string_view key = level.page.nodes[i].key;
    const bool first_of_leaf = leaf && i == 0;
    if (key < last || (key == last && !first_of_leaf))
      file_.corrupt(level.page.number, "its keys are out of order");
    last = key;
  }
  if (level.above && last >= *level.above)
    file_.corrupt(level.page.number, "its keys are out of order with other pages'");
}

void LmdbTree::check_position() const {
  const std::span<const Level> branches = std::span(levels_).first(levels_.size() - 1);
  const bool last = std::ranges::all_of(
      branches, [](const Level& level) { return level.index + 1 == level.page.nodes.size(); });
  if (walked_ > size_ || (last && walked_ != size_))
    file_.corrupt(levels_.back().page.number,
                  fmt::format("the tree has not the {} records of the meta page", size_));
}

}  // namespace cortado
