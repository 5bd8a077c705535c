#include "cortado/data/lmdb_tree.h"

#include <algorithm>
#include <fmt/format.h>

namespace cortado {

const LmdbNode& LmdbTree::find(int64_t index) {
  try {
    go_near(index);
    while (index >= leaf_end()) step(1);
    while (index < first_) step(-1);
  } catch (...) {
    levels_.clear();
    throw;
  }
  return levels_.back().page.nodes[index - first_];
}

// Goes to the first or the last leaf, where that is nearer than the present one.
void LmdbTree::go_near(int64_t index) {
  const int64_t here = levels_.empty()       ? size_
                       : index < first_      ? first_ - index
                       : index >= leaf_end() ? index - leaf_end()
                                             : 0;
  if (index < here && index <= size_ - index)
    go_to(End::first);
  else if (size_ - index < here)
    go_to(End::last);
}

void LmdbTree::go_to(End end) {
  levels_.clear();
  push(file_.root(), {}, std::nullopt, end);
  descend(end);
  first_ = end == End::first ? 0 : size_ - leaf_size();
  check_position();
}

// Goes to the next leaf (1) or the one before (-1).
void LmdbTree::step(int direction) {
  const int64_t left = leaf_size();
  auto at_end = [&](const Level& level) {
    return direction > 0 ? level.index + 1 == level.page.nodes.size() : level.index == 0;
  };
  levels_.pop_back();
  while (!levels_.empty() && at_end(levels_.back())) levels_.pop_back();
  if (levels_.empty())
    file_.corrupt(file_.root(),
                  fmt::format("the tree below it has not the {} records of the meta page", size_));
  levels_.back().index += direction;
  descend(direction > 0 ? End::first : End::last);
  first_ += direction > 0 ? left : -leaf_size();
  check_position();
}

// Goes to the first or last leaf below the deepest level's child.
void LmdbTree::descend(End end) {
  while (std::ssize(levels_) < file_.depth()) {
    const Level& parent = levels_.back();
    const std::vector<LmdbNode>& nodes = parent.page.nodes;
    const size_t child = parent.index;
    std::string low = child > 0 ? std::string(nodes[child].key) : parent.low;
    std::optional<std::string> above = parent.above;
    if (child + 1 < nodes.size()) above = nodes[child + 1].key;
    push(nodes[child].page, std::move(low), std::move(above), end);
  }
}

void LmdbTree::push(uint64_t number, std::string low, std::optional<std::string> above, End end) {
  const bool leaf = std::ssize(levels_) + 1 == file_.depth();
  LmdbPage page = file_.page(number, leaf);
  const size_t index = end == End::first ? 0 : page.nodes.size() - 1;
  levels_.push_back({std::move(page), index, std::move(low), std::move(above)});
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
  const bool leftmost = std::ranges::all_of(branches, [](const Level& level) { return level.index == 0; });
  const bool rightmost = std::ranges::all_of(
      branches, [](const Level& level) { return level.index + 1 == level.page.nodes.size(); });
  if (first_ < 0 || leaf_end() > size_ || (leftmost && first_ != 0) || (rightmost && leaf_end() != size_))
    file_.corrupt(levels_.back().page.number,
                  fmt::format("the tree has not the {} records of the meta page", size_));
}

}  // namespace cortado
