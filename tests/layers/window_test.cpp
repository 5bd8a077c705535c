// Window arithmetic against enumeration of every window's positions.
#include "cortado/layers/window.h"

#include <functional>
#include <gtest/gtest.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

void for_each_axis(const std::function<void(const WindowAxis&)>& visit) {
  for (int64_t kernel : {1, 2, 3, 5, 7}) {
    for (int64_t stride : {1, 2, 3, 4}) {
      for (int64_t pad : {0, 1, 2, 3}) {
        for (int64_t dilation : {1, 2, 3}) visit({kernel, stride, pad, dilation});
      }
    }
  }
}

TEST(Window, CountsTheWindowsInsideThePaddedImage) {
  for_each_axis([](const WindowAxis& axis) {
    for (int64_t image = 1; image < 20; ++image) {
      int64_t expected = 0;
      while (axis.first(expected) + axis.extent() <= image + axis.pad) ++expected;
      if (expected == 0) {
        EXPECT_THROW(window_count(image, axis), UserError);
      } else {
        EXPECT_EQ(window_count(image, axis), expected);
      }
    }
  });
}

TEST(Window, RoundsUp) {
  EXPECT_EQ(window_count(24, {2, 2}, Rounding::up), 12);
  EXPECT_EQ(window_count(32, {3, 2}, Rounding::up), 16);  // cifar10_full's pool1; 15 rounded down
  EXPECT_EQ(window_count(32, {3, 2}, Rounding::down), 15);
  EXPECT_EQ(window_count(112, {3, 2}, Rounding::up), 56);  // resnet-50's pool1
  EXPECT_EQ(window_count(5, {3, 2, 1}, Rounding::up_inside), 3);
  EXPECT_EQ(window_count(4, {3, 2, 1}, Rounding::up_inside), 3);  // the third starts at 3, inside
  EXPECT_EQ(window_count(3, {2, 2, 1}, Rounding::up_inside), 2);  // a third would start at 3, outside
  EXPECT_EQ(window_count(3, {2, 2, 1}, Rounding::up), 3);
  EXPECT_EQ(window_count(6, {1, 2}, Rounding::up_inside), 3);
  EXPECT_EQ(window_count(6, {1, 2}, Rounding::up), 4);  // the fourth is empty
  EXPECT_EQ(window_count(2, {3, 2}, Rounding::up), 1);  // larger than the image by less than a stride
  EXPECT_THROW(window_count(1, {3, 2}, Rounding::up), UserError);
}

TEST(Window, ReadsExactlyTheHullOfItsPositions) {
  for_each_axis([](const WindowAxis& axis) {
    int64_t image = 11;
    if (axis.extent() > image + 2 * axis.pad) return;
    int64_t windows = window_count(image, axis, Rounding::up);
    for (int64_t begin = 0; begin < windows; ++begin) {
      for (int64_t end = begin + 1; end <= windows; ++end) {
        Range expected{image, 0};
        for (int64_t w = begin; w < end; ++w) {
          for (int64_t k = 0; k < axis.kernel; ++k) {
            int64_t position = axis.first(w) + k * axis.dilation;
            if (position < 0 || position >= image) continue;
            expected = {std::min(expected.begin, position), std::max(expected.end, position + 1)};
          }
        }
        if (expected.size() == 0) expected = {};
        EXPECT_EQ(window_reads({begin, end}, axis, image), expected)
            << "windows " << begin << " to " << end << " of kernel " << axis.kernel << " stride "
            << axis.stride << " pad " << axis.pad << " dilation " << axis.dilation;
      }
    }
  });
}

TEST(Window, SpreadReadsExactlyTheWindowsThatWrite) {
  for_each_axis([](const WindowAxis& axis) {
    int64_t windows = 5;
    if (axis.stride * (windows - 1) + axis.extent() <= 2 * axis.pad) return;
    int64_t image = spread_extent(windows, axis);
    for (int64_t begin = 0; begin < image; ++begin) {
      for (int64_t end = begin + 1; end <= image; ++end) {
        Range expected{windows, 0};
        for (int64_t w = 0; w < windows; ++w) {
          for (int64_t k = 0; k < axis.kernel; ++k) {
            int64_t position = axis.first(w) + k * axis.dilation;
            if (position < begin || position >= end) continue;
            expected = {std::min(expected.begin, w), std::max(expected.end, w + 1)};
          }
        }
        if (expected.size() == 0) expected = {};
        EXPECT_EQ(spread_reads({begin, end}, axis, windows), expected);
      }
    }
  });
}

TEST(Window, SpreadingUndoesAnExactFit) {
  for_each_axis([](const WindowAxis& axis) {
    if (axis.stride * 5 + axis.extent() <= 2 * axis.pad) return;
    EXPECT_EQ(window_count(spread_extent(6, axis), axis), 6);
  });
}

TEST(Window, OptionsAreGivenOnceOrPerAxis) {
  EXPECT_EQ(per_axis("pad", {}, 3, 0, 0), (PerAxis{0, 0, 0}));
  EXPECT_EQ(per_axis("pad", {2}, 2, 0, 0), (PerAxis{2, 2}));
  EXPECT_EQ(per_axis("pad", {1, 2}, 2, 0, 0), (PerAxis{1, 2}));
  EXPECT_THROW(per_axis("pad", {1, 2}, 3, 0, 0), UserError);
  EXPECT_THROW(per_axis("kernel size", {}, 2, -1, 1), UserError);
  EXPECT_THROW(per_axis("stride", {0}, 2, 1, 1), UserError);
}

TEST(Windows, AllOfThemHaveTheWholeImage) {
  const WindowAxis every_other{.kernel = 1, .stride = 2};
  EXPECT_EQ(window_image({0, 28}, 28, every_other, 56), (Range{0, 56}));
  EXPECT_EQ(window_image({0, 14}, 28, every_other, 56), (Range{0, 27}));
  EXPECT_EQ(window_image({14, 28}, 28, every_other, 56), (Range{28, 55}));
}

}  // namespace
}  // namespace cortado
