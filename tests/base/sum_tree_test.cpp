#include "cortado/base/sum_tree.h"

#include <gtest/gtest.h>
#include <string>

namespace cortado {
namespace {

using Sizes = std::vector<int64_t>;

TEST(SumTree, SharesAreNodes) {
  EXPECT_EQ(tree_shares(1), (Sizes{1}));
  EXPECT_EQ(tree_shares(2), (Sizes{1, 1}));
  EXPECT_EQ(tree_shares(3), (Sizes{2, 1, 1}));
  EXPECT_EQ(tree_shares(4), (Sizes{1, 1, 1, 1}));
  EXPECT_EQ(tree_shares(5), (Sizes{2, 2, 2, 1, 1}));
  EXPECT_EQ(tree_shares(8), Sizes(8, 1));
}

// The sum as a text: members by letter.
std::string sum_of(const Sizes& sizes) {
  std::vector<std::string> members;
  for (size_t i = 0; i < sizes.size(); ++i) members.emplace_back(1, static_cast<char>('a' + i));
  sum_in_tree(sizes, [&](size_t i, size_t j) { members[i] = "(" + members[i] + members[j] + ")"; });
  return members[0];
}

TEST(SumTree, AddsNodes) {
  EXPECT_EQ(sum_of({4}), "a");
  EXPECT_EQ(sum_of(Sizes(8, 1)), "(((ab)(cd))((ef)(gh)))");
  EXPECT_EQ(sum_of({2, 1, 1}), "(a(bc))");
  EXPECT_EQ(sum_of({2, 2, 2, 1, 1}), "((ab)(c(de)))");
}

TEST(SumTree, RefusesWhatAreNoNodes) { EXPECT_THROW(sum_of({1, 2, 1}), InternalError); }

}  // namespace
}  // namespace cortado
