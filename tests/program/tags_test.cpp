#include "cortado/program/tags.h"

#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "cortado/base/index.h"

namespace cortado {
namespace {

// Every tag of a Program, those of both messages of a sum in a tree among them.
std::vector<int> all_tags(int operations, int parameters) {
  const MessageTags tags(operations);
  std::vector<int> all;
  for (int o = 0; o < operations; ++o) {
    const OperationIndex operation(o);
    for (const bool backward : {false, true}) {
      for (int half = 0; half < 2; ++half) {
        all.push_back(tags.exchange(operation, half, backward));
        all.push_back(tags.exchange_again(all.back()));
      }
      all.push_back(tags.statistics(operation, backward));
      all.push_back(all.back() + 1);
    }
  }
  for (int p = 0; p < parameters; ++p) {
    all.push_back(tags.gradients(ParameterIndex(p)));
    all.push_back(all.back() + 1);
  }
  return all;
}

TEST(MessageTags, AreAllDifferentWithoutGaps) {
  const std::vector<int> all = all_tags(5, 7);
  const std::set<int> different(all.begin(), all.end());
  EXPECT_EQ(different.size(), all.size());
  EXPECT_EQ(*different.begin(), 0);
  EXPECT_EQ(*different.rbegin(), 12 * 5 + 2 * 7 - 1);
}

}  // namespace
}  // namespace cortado
