#include "cortado/base/index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <type_traits>
#include <unordered_set>

namespace cortado {
namespace {

using AppleIndex = TypedIndex<struct AppleTag>;
using PearIndex = TypedIndex<struct PearTag>;
using Apples = IndexedVector<AppleIndex, double>;

template <class Vector, class Index>
constexpr bool takes = requires(Vector vector, Index index) {
  vector[index];
};

static_assert(takes<Apples, AppleIndex> && takes<const Apples, AppleIndex>);
static_assert(!takes<Apples, PearIndex> && !takes<Apples, int> && !takes<Apples, size_t>);
static_assert(!takes<std::vector<double>, AppleIndex>, "an index is no number");

static_assert(!std::is_convertible_v<int, AppleIndex> && !std::is_convertible_v<AppleIndex, int>);
static_assert(!std::is_convertible_v<AppleIndex, bool>);
static_assert(!std::is_constructible_v<AppleIndex, PearIndex> &&
              !std::is_assignable_v<AppleIndex&, PearIndex>);
static_assert(!std::is_invocable_v<void (*)(AppleIndex), PearIndex>);
static_assert(!std::is_invocable_v<std::equal_to<>, AppleIndex, PearIndex>);
static_assert(!std::is_convertible_v<IndexedVector<PearIndex, double>, Apples>);

static_assert(sizeof(AppleIndex) == sizeof(int) && std::is_trivially_copyable_v<AppleIndex>);

TEST(TypedIndex, IsNowhereUnlessItIsGivenAPlace) {
  EXPECT_FALSE(AppleIndex());
  EXPECT_EQ(AppleIndex().value(), -1);
  EXPECT_TRUE(AppleIndex(0));
  EXPECT_LT(AppleIndex(), AppleIndex(0));
}

TEST(TypedIndex, CountsHashesAndPrints) {
  AppleIndex index(1);
  EXPECT_EQ(++index, AppleIndex(2));
  EXPECT_EQ(--index, AppleIndex(1));
  ++index;
  const std::unordered_set<AppleIndex> set{AppleIndex(1), AppleIndex(2), AppleIndex(1)};
  EXPECT_EQ(set.size(), 2u);
  EXPECT_EQ(fmt::format("{:03}", index), "002");
}

TEST(IndexedVector, IsWalkedByItsIndices) {
  Apples apples{1, 2, 4};
  double sum = 0;
  std::vector<int> places;
  for (AppleIndex apple : indices(apples)) {
    places.push_back(apple.value());
    sum += apples[apple];
  }
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(places, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(apples.end_index(), AppleIndex(3));
  apples.push_back(8);
  EXPECT_EQ(apples[AppleIndex(3)], 8);
  EXPECT_EQ(apples, (Apples{1, 2, 4, 8}));
  EXPECT_EQ(apples.at(AppleIndex(3)), 8);
  EXPECT_THROW(apples.at(AppleIndex()), std::out_of_range);
  for (AppleIndex apple : indices(Apples())) FAIL() << apple.value();
}

}  // namespace
}  // namespace cortado
