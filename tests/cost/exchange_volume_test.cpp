#include "cortado/cost/exchange_volume.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

#include "cortado/base/error.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pooling.h"
#include "cortado/parallel/collectives.h"
#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado {
namespace {

constexpr double float_bytes = sizeof(float);
int rings_seen = 0;  // volumes that went round in rings

struct Sent {
  size_t from, to;
  double bytes;
};

// What goes round in rings, by the rule of the Programs. Nothing unless all that moves does.
std::vector<Sent> round_rings(const std::vector<Transfer>& moves, const Layout& needed) {
  std::vector<Sent> sent;
  for (size_t rank = 0; rank < needed.size(); ++rank) {
    if (!needed[rank]) continue;
    const auto ring = ring_group(moves, needed, static_cast<int>(rank));
    if (!ring) return {};
    // Each member hands on all but the part of the next one.
    const std::vector<int>& members = ring->members;
    const auto place =
        static_cast<size_t>(std::ranges::find(members, static_cast<int>(rank)) - members.begin());
    const size_t next = (place + 1) % members.size();
    const auto& part = ring->chunks[next];
    const int64_t moved = needed[rank]->shape().size() - (part ? part->shape().size() : 0);
    sent.push_back({rank, static_cast<size_t>(members[next]), static_cast<double>(moved) * float_bytes});
  }
  return sent;
}

// What transfers() moves, counted one by one.
ExchangeVolume counted(const Layout& owned, const Layout& needed, const std::vector<int>& node_of) {
  const size_t ranks = owned.size();
  const std::vector<Transfer> moves = transfers(owned, needed);
  std::vector<Sent> all = round_rings(moves, needed);
  rings_seen += !all.empty();
  if (all.empty()) {
    for (const Transfer& move : moves)
      if (move.from != move.to)
        all.push_back({static_cast<size_t>(move.from), static_cast<size_t>(move.to),
                       static_cast<double>(move.box.shape().size()) * float_bytes});
  }
  std::vector<double> in_near(ranks), in_far(ranks), out_near(ranks), out_far(ranks), node_in(ranks),
      node_out(ranks), node_near(ranks);
  std::vector<int> senders(ranks);
  ExchangeVolume volume;
  for (const auto& [from, to, bytes] : all) {
    const bool far = node_of[from] != node_of[to];
    (far ? in_far : in_near)[to] += bytes;
    (far ? out_far : out_near)[from] += bytes;
    if (!far) node_near[static_cast<size_t>(node_of[to])] += bytes;
    if (far) node_in[static_cast<size_t>(node_of[to])] += bytes;
    if (far) node_out[static_cast<size_t>(node_of[from])] += bytes;
  }
  for (const Transfer& move : moves) {
    if (move.from == move.to) continue;
    ++senders[static_cast<size_t>(move.to)];
    volume.total += bytes_of(move.box.shape(), ElementType::f32);
  }
  auto most = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::max(*std::ranges::max_element(a), *std::ranges::max_element(b));
  };
  volume.inside = most(in_near, out_near);
  volume.across = most(in_far, out_far);
  volume.node_across = most(node_in, node_out);
  volume.node_inside = *std::ranges::max_element(node_near);
  volume.messages = *std::ranges::max_element(senders);
  // There are as many as a ring has steps, also where only some of its ranks had parts.
  if (!round_rings(moves, needed).empty())
    volume.messages =
        static_cast<int>(std::ranges::count(
            needed, *std::ranges::find_if(needed, [](const auto& box) { return box.has_value(); }))) -
        1;
  return volume;
}

std::vector<ParallelConfig> configs_of(const Layer& layer, const Shape& input, int ranks) {
  const std::vector<Shape> inputs{input}, outputs = layer.output_shapes(inputs, 1);
  std::vector<ParallelConfig> configs;
  for (int n = 1; n <= ranks; ++n)
    for (int c = 1; n * c <= ranks; ++c)
      for (int h = 1; n * c * h <= ranks; ++h)
        for (int w = 1; n * c * h * w <= ranks; ++w)
          for (int r = 1; n * c * h * w * r <= ranks; ++r) {
            ParallelConfig config{.degrees = {.n = n, .c = c, .d = 1, .h = h, .w = w, .r = r}, .devices = {}};
            config.devices.resize(static_cast<size_t>(config.degrees.product()));
            std::iota(config.devices.begin(), config.devices.end(), 0);
            try {
              check_config(config, layer, inputs, outputs, ranks);
              configs.push_back(config);
            } catch (const UserError&) {
            }
          }
  return configs;
}

void expect_equal(const ExchangeVolume& found, const ExchangeVolume& expected) {
  EXPECT_EQ(found.total, expected.total);
  EXPECT_NEAR(found.inside, expected.inside, 1e-3);
  EXPECT_NEAR(found.across, expected.across, 1e-3);
  EXPECT_NEAR(found.node_across, expected.node_across, 1e-3);
  EXPECT_NEAR(found.node_inside, expected.node_inside, 1e-3);
  EXPECT_EQ(found.messages, expected.messages);
}

void expect_counted(const Layer& from, const Shape& input, const Layer& to, int ranks, int per_node) {
  const std::vector<Shape> inputs{input}, between = from.output_shapes(inputs, 1),
                                          outputs = to.output_shapes(between, 1);
  std::vector<int> node_of(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) node_of[static_cast<size_t>(rank)] = rank / per_node;
  for (const ParallelConfig& a : configs_of(from, input, ranks)) {
    for (const ParallelConfig& b : configs_of(to, between[0], ranks)) {
      SCOPED_TRACE(a.text() + " to " + b.text() + ", " + std::to_string(per_node) + " a node");
      const Layout owned = cut_layer(from, inputs, between, a, ranks).owns[0];
      const Layout needed = cut_layer(to, between, outputs, b, ranks).reads[0];
      const GridLayout owned_grid(owned), needed_grid(needed);
      ASSERT_TRUE(owned_grid.is_grid());
      ASSERT_TRUE(needed_grid.is_grid());
      const ExchangeVolume found = exchange_volume(owned_grid, needed_grid, node_of);
      const ExchangeVolume expected = counted(owned, needed, node_of);
      expect_equal(found, expected);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Volumes of many layouts at once, every `step`-th of both layers, on more nodes.
void expect_rows_counted(const Layer& from, const Shape& input, const Layer& to, int ranks, int per_node,
                         int step) {
  const std::vector<Shape> inputs{input}, between = from.output_shapes(inputs, 1),
                                          outputs = to.output_shapes(between, 1);
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / per_node);
  std::vector<Layout> owned, needed;
  const std::vector<ParallelConfig> first = configs_of(from, input, ranks),
                                    second = configs_of(to, between[0], ranks);
  for (size_t a = 0; a < first.size(); a += static_cast<size_t>(step))
    owned.push_back(cut_layer(from, inputs, between, first[a], ranks).owns[0]);
  for (size_t b = 0; b < second.size(); b += static_cast<size_t>(step))
    needed.push_back(cut_layer(to, between, outputs, second[b], ranks).reads[0]);
  const ExchangeVolumes volumes({owned.begin(), owned.end()}, {needed.begin(), needed.end()}, node_of);
  ExchangeVolumes::Room room = volumes.room(), forgetful = volumes.room(0);
  for (size_t a = 0; a < owned.size(); ++a) {
    const std::vector<ExchangeVolume> found = volumes.row(a, a % 2 == 0 ? room : forgetful);
    for (size_t b = 0; b < needed.size(); ++b) {
      SCOPED_TRACE(fmt::format("{} to {}, {} ranks, {} a node", a, b, ranks, per_node));
      expect_equal(found[b], counted(owned[a], needed[b], node_of));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

Convolution convolution(int64_t outputs, int64_t kernel, int64_t stride, int64_t pad) {
  ConvolutionOptions options;
  options.num_output = outputs;
  options.kernel = {kernel};
  options.stride = {stride};
  options.pad = {pad};
  return Convolution(options);
}

class ExchangeVolumeOf : public ::testing::TestWithParam<std::pair<int, int>> {};  // ranks, ranks a node

TEST_P(ExchangeVolumeOf, IsThatOfTransfers) {
  const auto [ranks, per_node] = GetParam();
  const Shape image{7, 5, 9, 10};
  PoolingOptions pool{.kernel = {3}, .stride = {2}};
  InnerProductOptions product;
  product.num_output = 11;
  const Convolution first = convolution(6, 3, 1, 1);
  expect_counted(first, image, convolution(9, 3, 1, 1), ranks, per_node);
  expect_counted(first, image, convolution(5, 5, 2, 0), ranks, per_node);
  expect_counted(first, image, Pooling(pool), ranks, per_node);
  expect_counted(first, image, InnerProduct(product), ranks, per_node);
  expect_counted(InnerProduct(product), image, InnerProduct(product), ranks, per_node);
  EXPECT_GT(rings_seen, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeVolumeOf,
                         ::testing::Values(std::pair(2, 2), std::pair(3, 1), std::pair(4, 4), std::pair(4, 2),
                                           std::pair(6, 3), std::pair(6, 4), std::pair(8, 4)));

TEST(ExchangeVolumes, OfManyLayoutsAreThoseOfTransfers) {
  const Convolution first = convolution(12, 3, 1, 1), second = convolution(9, 3, 2, 1);
  InnerProductOptions product;
  product.num_output = 24;
  for (const auto& [ranks, per_node, step] :
       {std::tuple(4, 4, 1), {5, 2, 1}, {8, 4, 1}, {8, 3, 1}, {16, 1, 3}, {24, 4, 17}, {36, 8, 29}}) {
    const Shape image{ranks + 3, 6, 17, 16};
    expect_rows_counted(first, image, second, ranks, per_node, step);
    expect_rows_counted(first, image, InnerProduct(product), ranks, per_node, step);
    expect_rows_counted(InnerProduct(product), image, InnerProduct(product), ranks, per_node, step);
  }
}

TEST(GridLayout, KnowsWhenItIsNone) {
  Layout layout(3);
  layout[0] = Box::whole(Shape{2, 2});
  (*layout[0])[0] = {0, 1};
  layout[1] = Box::whole(Shape{2, 2});
  (*layout[1])[0] = {1, 2};
  EXPECT_TRUE(GridLayout(layout).is_grid());
  (*layout[1])[1] = {0, 1};
  EXPECT_FALSE(GridLayout(layout).is_grid());
}

}  // namespace
}  // namespace cortado
