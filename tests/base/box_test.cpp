#include "cortado/base/box.h"

#include <gtest/gtest.h>
#include <vector>

namespace cortado {
namespace {

TEST(Box, IntersectsAndContains) {
  Box whole = Box::whole(Shape{8, 64, 10});
  Box part = whole;
  part[0] = {4, 12};
  part[2] = {-1, 3};
  Box clipped = part.clip(Shape{8, 64, 10});
  EXPECT_EQ(clipped.text(), "[4,8)x[0,64)x[0,3)");
  EXPECT_TRUE(whole.contains(clipped));
  EXPECT_FALSE(whole.contains(part));
  EXPECT_FALSE(clipped.contains(whole));
  EXPECT_EQ(clipped.shape(), (Shape{4, 64, 3}));
}

TEST(Box, EmptyBoxIsContainedAnywhere) {
  Box whole = Box::whole(Shape{4, 4});
  Box nothing = whole;
  nothing[1] = {3, 3};
  EXPECT_TRUE(nothing.empty());
  EXPECT_TRUE(whole.contains(nothing));
  EXPECT_EQ(whole.intersect(nothing).shape().size(), 0);
}

TEST(Box, HullCoversBoth) {
  Box a = Box::whole(Shape{4, 4}), b = a;
  a[0] = {0, 1};
  b[0] = {3, 4};
  EXPECT_EQ(a.hull(b), Box::whole(Shape{4, 4}));
}

TEST(Box, CopiesWhatTwoBoxesShare) {
  Box from = Box::whole(Shape{6, 5, 4}), to = from;
  from[0] = {1, 5};
  from[2] = {1, 4};
  to[0] = {3, 6};
  to[1] = {2, 4};
  to[2] = {0, 3};
  auto number = [](int64_t a, int64_t b, int64_t c) { return static_cast<float>(100 * a + 10 * b + c); };
  std::vector<float> values, copied(static_cast<size_t>(to.shape().size()), -1.0f);
  for (int64_t a = 1; a < 5; ++a)
    for (int64_t b = 0; b < 5; ++b)
      for (int64_t c = 1; c < 4; ++c) values.push_back(number(a, b, c));
  copy_common(from, values.data(), to, copied.data());
  size_t i = 0;
  for (int64_t a = 3; a < 6; ++a)
    for (int64_t b = 2; b < 4; ++b)
      for (int64_t c = 0; c < 3; ++c, ++i) EXPECT_EQ(copied[i], a < 5 && c >= 1 ? number(a, b, c) : -1.0f);
  float one = 3, other = 0;
  copy_common(Box::whole(Shape{}), &one, Box::whole(Shape{}), &other);
  EXPECT_EQ(other, 3);
}

}  // namespace
}  // namespace cortado
