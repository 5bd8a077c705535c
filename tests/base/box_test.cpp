#include "cortado/base/box.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cortado
