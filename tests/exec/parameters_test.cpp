#include "cortado/exec/parameters.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/device/host_view.h"

#include "tests/exec/test_device.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::NetBuilder;

// Weights a/weight {4, 4, 3, 3} and a/bias {4}.
Network small_net() { return NetBuilder().conv("a", "data").loss("a", "data").build(); }

Box box(std::initializer_list<Range> ranges) {
  Box box = Box::whole(Shape(std::vector<int64_t>(ranges.size(), 1)));
  int axis = 0;
  for (Range range : ranges) box[axis++] = range;
  return box;
}

// The elements of `part` of a whole row-major 4-D tensor, by plain loops.
std::vector<float> part_of(const std::vector<float>& whole, const Shape& shape, const Box& part) {
  std::vector<float> values;
  for (int64_t a = part[0].begin; a < part[0].end; ++a)
    for (int64_t b = part[1].begin; b < part[1].end; ++b)
      for (int64_t c = part[2].begin; c < part[2].end; ++c)
        for (int64_t d = part[3].begin; d < part[3].end; ++d)
          values.push_back(whole[((a * shape[1] + b) * shape[2] + c) * shape[3] + d]);
  return values;
}

// A format that reverses the order and pads with three zeros in front.
ParameterFormat reversed(int64_t count) {
  ParameterFormat format;
  format.name = "reversed";
  format.elements = count + 3;
  format.from_canonical = [count](const float* canonical, float* own) {
    std::fill_n(own, 3, 0.0f);
    std::reverse_copy(canonical, canonical + count, own + 3);
  };
  format.to_canonical = [count](const float* own, float* canonical) {
    std::reverse_copy(own + 3, own + 3 + count, canonical);
  };
  return format;
}

const Box slice = box({{1, 4}, {2, 3}, {0, 3}, {0, 3}});

TEST(ParameterStore, SlicesAreFilledAsTheWhole) {
  Network net = small_net();
  const testing::TestDevice device;
  ParameterStore whole(device), part(device);
  auto all = whole.add(net, {{}, {}}, 5);
  auto some = part.add(net, {reversed(27), {}}, 5, {slice, std::nullopt});
  const auto& weight = part.entries()[some[ParameterIndex(0)]];
  EXPECT_EQ(weight.elements, 30);
  EXPECT_EQ(part.canonical(some[ParameterIndex(0)]),
            part_of(whole.canonical(all[ParameterIndex(0)]), {4, 4, 3, 3}, slice));
  const device::HostView values(device, weight.value, weight.elements);
  EXPECT_EQ(values.values()[3], part.canonical(some[ParameterIndex(0)])[26]);
  const auto& bias = part.entries()[some[ParameterIndex(1)]];
  EXPECT_FALSE(bias.held);
  EXPECT_EQ(bias.elements, 0);
  EXPECT_EQ(bias.value, nullptr);
  EXPECT_EQ(bias.gradient, nullptr);
  EXPECT_TRUE(part.canonical(some[ParameterIndex(1)]).empty());
}

TEST(ParameterStore, BeginsLaterAsAtOnce) {
  const Network net = small_net();
  const testing::TestDevice device;
  ParameterStore at_once(device), later(device);
  const auto some = at_once.add(net, {{}, {}}, 5);
  const auto same = later.add(net, {{}, {}}, std::nullopt);
  EXPECT_NE(later.canonical(same[ParameterIndex(0)]), at_once.canonical(some[ParameterIndex(0)]));
  later.begin(net, same, 5);
  for (ParameterIndex p : indices(some)) EXPECT_EQ(later.canonical(same[p]), at_once.canonical(some[p]));
}

TEST(ParameterStore, TakesItsSliceOutOfAWhole) {
  Network net = small_net();
  const testing::TestDevice device;
  ParameterStore store(device);
  auto entries = store.add(net, {reversed(27), {}}, 5, {slice, std::nullopt});
  std::vector<float> values(4 * 4 * 3 * 3), biases(4, 1.0f);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  store.set_from_whole(entries[ParameterIndex(0)], values);
  store.set_from_whole(entries[ParameterIndex(1)], biases);
  EXPECT_EQ(store.canonical(entries[ParameterIndex(0)]), part_of(values, {4, 4, 3, 3}, slice));
}

TEST(ParameterStore, ALaterNetWithAnotherSliceHasACopy) {
  Network net = small_net();
  const testing::TestDevice device;
  ParameterStore store(device);
  Box inner = slice;
  inner[0] = {2, 3};
  auto first = store.add(net, {reversed(27), {}}, 5, {slice, Box::whole({4})});
  auto same = store.add(net, {reversed(27), {}}, 5, {slice, Box::whole({4})});
  EXPECT_EQ(first, same);
  auto later = store.add(net, {reversed(9), {}}, 5, {inner, std::nullopt});
  EXPECT_EQ(store.entries()[later[ParameterIndex(0)]].copy_of, first[ParameterIndex(0)]);
  EXPECT_FALSE(store.entries()[later[ParameterIndex(1)]].held);
  std::vector<float> values(4 * 4 * 3 * 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  store.set_from_whole(first[ParameterIndex(0)], values);
  store.refresh();
  EXPECT_EQ(store.canonical(later[ParameterIndex(0)]), part_of(values, {4, 4, 3, 3}, inner));
  EXPECT_THROW(store.add(net, {{}, {}}, 5), InternalError) << "the whole of what is held in part";
}

// A net that is made anew, with other shapes or by others' parameters, takes the copies that are there.
TEST(ParameterStore, CopiesAreReused) {
  const Network net = small_net();
  const testing::TestDevice device;
  ParameterStore store(device);
  const auto first = store.add(net, {{}, {}}, 5);
  const auto copies = store.add(net, {reversed(144), {}}, 5);
  const size_t entries = store.entries().size();
  EXPECT_EQ(entries, first.size() + 1);
  for (int made = 0; made < 3; ++made) {
    EXPECT_EQ(store.add(net, {reversed(144), {}}, 5), copies);
    EXPECT_EQ(store.add(net, {{}, {}}, 5), first);
  }
  EXPECT_EQ(store.entries().size(), entries);
}

}  // namespace
}  // namespace cortado
