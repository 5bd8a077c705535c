#include "cortado/base/batch_part.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "tests/base/part_of.h"

namespace cortado {
namespace {

TEST(BatchPart, HasRowsOfSamplesAndWholeTops) {
  const std::vector<Shape> shapes{{7, 3, 5}, {7}, {4, 7}, {}};
  const BatchPart part = part_of_samples(shapes, {2, 5});
  EXPECT_EQ(part.samples, (Range{2, 5}));
  EXPECT_EQ(part.tops[0].text(), "[2,5)x[0,3)x[0,5)");
  EXPECT_EQ(part.tops[1].text(), "[2,5)");
  EXPECT_EQ(part.tops[2], Box::whole(shapes[2]));
  EXPECT_EQ(part.tops[3], Box::whole(Shape{}));
  for (size_t top = 0; top < shapes.size(); ++top) EXPECT_TRUE(has_whole_rows(shapes[top], part.tops[top]));
  Box narrow = part.tops[0];
  narrow[2] = {1, 5};
  EXPECT_FALSE(has_whole_rows(shapes[0], narrow));
}

// Tensors of any rank whose memory is a box of a larger one, and boxes within them, some of them empty.
TEST(BatchPart, CutsOutWhatElementsOneByOneGive) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int64_t empty = 0, runs = 0, elements = 0;
  for (int i = 0; i < 500; ++i) {
    Shape shape;
    for (int64_t axis = pick(0, 5); axis > 0; --axis) shape.append(pick(1, 6));
    std::vector<float> values(static_cast<size_t>(shape.size()));
    std::iota(values.begin(), values.end(), 1.0f);
    Box whole = Box::whole(shape), box = whole, inner = whole;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t shift = pick(-2, 9), begin = pick(0, shape[axis]), end = pick(begin, shape[axis]);
      whole[axis] = {shift, shift + shape[axis]};
      if (pick(0, 2) > 0) inner[axis] = {begin, end};
      box[axis] = {inner[axis].begin + shift, inner[axis].end + shift};
    }
    const std::vector<float> expected = part_of(shape, values, inner);
    std::vector<float> part(expected.size());
    cut_out(whole, values.data(), box, part.data());
    EXPECT_EQ(part, expected) << whole.text() << " " << box.text();
    empty += box.empty();
    for_each_run(whole, box, [&](int64_t, int64_t count) { ++runs, elements += count; });
  }
  EXPECT_GT(empty, 20);
  EXPECT_LT(runs, elements);
}

}  // namespace
}  // namespace cortado
