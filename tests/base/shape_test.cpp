#include "cortado/base/shape.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

TEST(Shape, SpeaksItsExtents) {
  Shape shape{64, 3, 227, 227};
  EXPECT_EQ(shape.rank(), 4);
  EXPECT_EQ(shape.size(), 64 * 3 * 227 * 227);
  EXPECT_EQ(shape.spatial_size(), 227 * 227);
  EXPECT_EQ(shape.text(), "64x3x227x227");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.text(), "scalar");
  EXPECT_EQ((Shape{5, 7}.spatial_size()), 1);
}

TEST(Shape, CountsAxesFromTheEnd) {
  Shape shape{2, 3, 4};
  EXPECT_EQ(shape.canonical_axis(-1), 2);
  EXPECT_EQ(shape.canonical_axis(0), 0);
  EXPECT_THROW(shape.canonical_axis(3), UserError);
  EXPECT_THROW(shape.canonical_axis(-4), UserError);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW((Shape{1, -1}), UserError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), UserError);
  EXPECT_THROW((Shape{int64_t{1} << 40, int64_t{1} << 40}.size()), UserError);
}

TEST(Strides, ChannelsAreInnermost) {
  Strides last = channels_last_strides(Shape{2, 3, 4, 5});
  EXPECT_EQ(last[1], 1);
  EXPECT_EQ(last[3], 3);
  EXPECT_EQ(last[2], 15);
  EXPECT_EQ(last[0], 60);
  Strides flat = channels_last_strides(Shape{2, 3});
  EXPECT_EQ(flat[0], 3);
  EXPECT_EQ(flat[1], 1);
}

}  // namespace
}  // namespace cortado
