// A rank that needs a halo receives exactly the halo, counted by the communicator.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cortado/layers/convolution.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/scale.h"
#include "cortado/program/volume.h"

#include "tests/exec/job_run.h"

namespace cortado {
namespace {

struct Case {
  std::string name;
  LayerPtr layer;
  int64_t kernel[2], stride[2] = {1, 1}, pad[2] = {0, 0}, dilation[2] = {1, 1};
};

Case convolution(std::string name, std::array<int64_t, 2> kernel, std::array<int64_t, 2> stride,
                 std::array<int64_t, 2> pad, std::array<int64_t, 2> dilation) {
  ConvolutionOptions options{.num_output = 16, .bias_term = false};
  options.kernel = {kernel[0], kernel[1]};
  options.stride = {stride[0], stride[1]};
  options.pad = {pad[0], pad[1]};
  options.dilation = {dilation[0], dilation[1]};
  Case c{.name = std::move(name), .layer = std::make_shared<Convolution>(options), .kernel = {}};
  for (int axis : {0, 1}) {
    c.kernel[axis] = kernel[axis];
    c.stride[axis] = stride[axis];
    c.pad[axis] = pad[axis];
    c.dilation[axis] = dilation[axis];
  }
  return c;
}

Case pooling(std::string name, int64_t kernel, int64_t stride, int64_t pad) {
  PoolingOptions options{.kernel = {kernel}, .stride = {stride}, .pad = {pad}};
  Case c = convolution(std::move(name), {kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1});
  c.layer = std::make_shared<Pooling>(options);
  return c;
}

// Says which indices of an axis a part of the output reads: from the first tap of its first window to the
// last of its last.
std::vector<bool> read_by(const Case& c, int axis, int64_t extent, int64_t begin, int64_t end) {
  std::vector<bool> read(static_cast<size_t>(extent), false);
  const int64_t first = begin * c.stride[axis] - c.pad[axis];
  const int64_t last = (end - 1) * c.stride[axis] - c.pad[axis] + (c.kernel[axis] - 1) * c.dilation[axis];
  for (int64_t i = std::max<int64_t>(0, first); i <= std::min(extent - 1, last); ++i)
    read[static_cast<size_t>(i)] = true;
  return read;
}

// Places of a tile of one tensor that a tile of another reads, but where both are one rank's.
void expect_halo(const Case& c, const Degrees& grid, int64_t extent) {
  SCOPED_TRACE(fmt::format("{} cut {}", c.name, grid.text()));
  const Shape input{2, 16, extent, extent};  // whole vectors: kernels pad no parameter
  const Shape output = c.layer->output_shapes({&input, 1}, 1)[0];
  ScaleOptions scale;
  scale.broadcast.num_axes = 1;
  testing::CutNet net({input, output});
  const ParallelConfig config = testing::on_all(grid);
  net.add("x", std::make_shared<Scale>(scale), "data0", config);
  net.add("y", c.layer, "x", config);
  net.add("loss", std::make_shared<EuclideanLoss>(), {"y", "data1"}, {"loss"}, config);
  const int ranks = grid.product();
  const auto runs = testing::run_job(net, ranks, testing::unpadded);

  // needs[a][b]: bytes of b's tile that a's part of the output reads.
  std::vector needs(static_cast<size_t>(ranks), std::vector<int64_t>(static_cast<size_t>(ranks), 0));
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      int64_t places[2] = {};
      for (int axis : {0, 1}) {
        const int parts = axis == 0 ? grid.h : grid.w;
        const int at = axis == 0 ? a / grid.w : a % grid.w, other = axis == 0 ? b / grid.w : b % grid.w;
        const Range mine = block_of(output[2 + axis], parts, at), theirs = block_of(extent, parts, other);
        const auto read = read_by(c, axis, extent, mine.begin, mine.end);
        places[axis] = std::count(read.begin() + theirs.begin, read.begin() + theirs.end, true);
      }
      needs[static_cast<size_t>(a)][static_cast<size_t>(b)] = input[0] * input[1] * places[0] * places[1] * 4;
    }
  }
  bool any = false;
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    int64_t halo = 0, given = 0;
    for (int other = 0; other < ranks; ++other) {
      if (other == rank) continue;
      halo += needs[static_cast<size_t>(rank)][static_cast<size_t>(other)];
      given += needs[static_cast<size_t>(other)][static_cast<size_t>(rank)];
    }
    any |= halo > 0;
    const auto& run = runs[static_cast<size_t>(rank)];
    // Forward the halo comes; backward its gradient goes. The loss goes to rank 0 and back. Tensors do not
    // move otherwise, only sums of gradients do.
    const int64_t loss = rank == 0 ? 4 * (ranks - 1) : 4;
    const Volumes volumes = volumes_of(run.program);
    EXPECT_EQ(volumes.gathers, Volume{});
    EXPECT_EQ(volumes.scatters, Volume{});
    EXPECT_EQ(run.traffic.received - volumes.gradients.received.count, halo + given + loss);
    EXPECT_EQ(run.traffic.sent - volumes.gradients.sent.count, halo + given + loss);
    int64_t forward = 0;
    for (const Step& step : run.program.steps) {
      const auto* exchange = step.as<steps::Exchange>();
      if (!exchange || exchange->backward || run.program.works[exchange->work].nodes.empty()) continue;
      for (const auto& part : run.program.movement_of(step).receives)
        if (part.box.rank() == 4) forward += bytes_of(part.box.shape(), ElementType::f32).count;
    }
    EXPECT_EQ(forward, halo);
  }
  EXPECT_TRUE(any) << "the case has no halo";
}

TEST(Halo, ARankReceivesExactlyIt) {
  const std::vector<Case> cases{convolution("3x3", {3, 3}, {1, 1}, {1, 1}, {1, 1}),
                                convolution("5x5", {5, 5}, {1, 1}, {2, 2}, {1, 1}),
                                convolution("1x7", {1, 7}, {1, 1}, {0, 3}, {1, 1}),
                                convolution("3x3 of stride 2", {3, 3}, {2, 2}, {1, 1}, {1, 1}),
                                convolution("7x7 of stride 2", {7, 7}, {2, 2}, {3, 3}, {1, 1}),
                                convolution("3x3, dilation 2", {3, 3}, {1, 1}, {2, 2}, {2, 2}),
                                convolution("3x3 without padding", {3, 3}, {1, 1}, {0, 0}, {1, 1}),
                                pooling("pooling of 3, stride 2", 3, 2, 0),
                                pooling("pooling of 3, stride 1", 3, 1, 1)};
  for (const Case& c : cases) {
    for (const Degrees& grid :
         {Degrees{.h = 2}, Degrees{.w = 2}, Degrees{.h = 2, .w = 2}, Degrees{.h = 3, .w = 2}}) {
      if (c.name == "1x7" && grid.w == 1) continue;  // no halo of rows
      expect_halo(c, grid, 17);
    }
  }
}

// 2x2 tiles of 8x8 and 3x3 windows: a row, a column and the corner of the rank across.
TEST(Halo, CornersComeFromTheRankAcross) {
  testing::CutNet net({Shape{1, 1, 8, 8}, Shape{1, 16, 8, 8}});
  const ParallelConfig config = testing::on_all({.h = 2, .w = 2});
  ScaleOptions scale;
  scale.broadcast.num_axes = 1;
  net.add("x", std::make_shared<Scale>(scale), "data0", config);
  net.add("y", convolution("", {3, 3}, {1, 1}, {1, 1}, {1, 1}).layer, "x", config);
  net.add("loss", std::make_shared<EuclideanLoss>(), {"y", "data1"}, {"loss"}, config);
  const auto runs = testing::run_job(net, 4, testing::unpadded);
  std::map<int, int64_t> floats;  // that rank 0 receives
  for (const Step& step : runs[0].program.steps) {
    const auto* exchange = step.as<steps::Exchange>();
    if (!exchange || exchange->backward) continue;
    for (const auto& part : runs[0].program.movement_of(step).receives)
      if (part.box.rank() == 4) floats[part.peer] += part.box.shape().size();
  }
  EXPECT_EQ(floats, (std::map<int, int64_t>{{1, 4}, {2, 4}, {3, 1}}));
}

}  // namespace
}  // namespace cortado
