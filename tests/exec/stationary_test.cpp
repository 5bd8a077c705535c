// What moves when the convolutions of ResNet-50's blocks are cut by channels and filters: by the program, by
// the communicator and by the formulas of Dryden et al., Channel and Filter Parallelism for Large-Scale CNN
// Training, SC 2019, sections 3.2 to 3.4.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/scale.h"
#include "cortado/program/volume.h"

#include "tests/exec/job_run.h"

namespace cortado {
namespace {

// conv_3: {512, 128, 28}; conv_5: {2048, 512, 7}
struct Block {
  int64_t wide, narrow, extent;
};
struct Conv {
  int64_t in, out, kernel;
};
std::vector<Conv> convolutions_of(const Block& block) {
  return {{block.wide, block.narrow, 1}, {block.narrow, block.narrow, 3}, {block.narrow, block.wide, 1}};
}

constexpr int64_t samples = 2;

// The devices as the next convolution of stationary-w wants them: the channel blocks of its input lie over
// filters x channels, where they lay over channels x filters ("its w can be transposed", section 3.4).
std::vector<int> transposed(const std::vector<int>& devices, const Degrees& grid) {
  std::vector<int> next(devices.size());
  for (int n = 0; n < grid.n; ++n) {
    for (int c = 0; c < grid.c; ++c) {
      for (int r = 0; r < grid.r; ++r) {
        const int first = n * grid.c * grid.r;
        next[static_cast<size_t>(first + c * grid.r + r)] =
            devices[static_cast<size_t>(first + r * grid.c + c)];
      }
    }
  }
  return next;
}

class Residual {
 public:
  Residual(const Block& block, const Degrees& grid)
      : net_({Shape{samples, block.wide, block.extent, block.extent}}), grid_(grid), devices_(on_all(grid)) {
    scale("x", "data0");
    first_ = devices_.devices;
    std::string blob = "x";
    for (const Conv& conv : convolutions_of(block)) {
      devices_.devices = transposed(devices_.devices, grid);
      const std::string name = fmt::format("conv{}", ++count_);
      ConvolutionOptions options{.num_output = conv.out, .bias_term = false, .kernel = {conv.kernel}};
      options.pad = {conv.kernel / 2};
      options.weight_filler.type = Filler::Type::msra;
      net_.add(name, std::make_shared<Convolution>(options), blob, devices_);
      net_.add(name + "_bn", std::make_shared<BatchNorm>(BatchNormOptions{}), name, pointwise());
      scale(name + "_scale", name + "_bn");
      blob = name + "_scale";
      if (count_ < 3) net_.add(blob + "_relu", relu(), {blob}, {blob}, pointwise());
    }
    net_.add("sum", std::make_shared<Eltwise>(EltwiseOptions{}), {"x", blob}, {"sum"}, pointwise());
    net_.add("relu", relu(), {"sum"}, {"sum"}, pointwise());
    net_.add("loss", std::make_shared<EuclideanLoss>(), {"sum", "data0"}, {"loss"}, pointwise());
  }

  const testing::CutNet& net() const { return net_; }
  // True when the rank holds other channels of x than of the block's output: the shortcut moves.
  bool shortcut_moves(int rank) const {
    return std::ranges::find(first_, rank) - first_.begin() !=
           std::ranges::find(devices_.devices, rank) - devices_.devices.begin();
  }
  int first_of_loss() const { return devices_.devices[0]; }

 private:
  static ParallelConfig on_all(const Degrees& grid) { return testing::on_all(grid); }
  static LayerPtr relu() { return std::make_shared<Pointwise>(ReluOptions{}); }
  // Channels as a sum over r leaves them.
  ParallelConfig pointwise() const {
    ParallelConfig config = devices_;
    config.degrees = {.n = grid_.n, .c = grid_.c * grid_.r};
    return config;
  }
  void scale(const std::string& name, const std::string& bottom) {
    ScaleOptions options;
    options.bias_term = name != "x";
    options.broadcast.num_axes = 1;
    net_.add(name, std::make_shared<Scale>(options), bottom, pointwise());
  }

  testing::CutNet net_;
  Degrees grid_;
  ParallelConfig devices_;
  std::vector<int> first_;
  int count_ = 0;
};

// Bytes that each rank sends, and receives: shares are equal.
struct Expected {
  int64_t gathers = 0, scatters = 0, statistics = 0, gradients = 0;
};

Expected formulas(const Block& block, const Degrees& g) {
  constexpr int64_t size = 4;
  Expected e;
  const int64_t slices = g.c * g.r, spots = samples / g.n * block.extent * block.extent;
  // A ring's reduce-scatter or allgather of V bytes over p ranks.
  auto ring = [](int64_t bytes, int p) { return bytes / p * (p - 1); };
  auto summed = [&](int64_t parameters) { return 2 * ring(parameters / slices * size, g.n); };
  e.gradients += summed(block.wide);  // of the scale that makes x
  for (const Conv& conv : convolutions_of(block)) {
    const int64_t x = spots * conv.in / g.r * size, y = spots * conv.out / g.c * size;
    // Forward: allgather of x over the filter grid, reduce-scatter of y over the channel grid; backward:
    // allgather of dL/dy, reduce-scatter of dL/dx.
    e.gathers += ring(x, g.c) + ring(y, g.r);
    e.scatters += ring(y, g.r) + ring(x, g.c);
    // Segmented allreduce of the slice over the samples' grid.
    e.gradients += summed(conv.out * conv.in * conv.kernel * conv.kernel);
    // Batch normalization: two parameters, two sums in double forward and two backward for each channel.
    e.gradients += 2 * summed(conv.out);
    e.statistics += 4 * 2 * ring(conv.out / slices * 8, g.n);
  }
  return e;
}

void expect_formulas(const Block& block, const Degrees& grid) {
  SCOPED_TRACE(fmt::format("{} channels, {}", block.wide, grid.text()));
  const Residual residual(block, grid);
  const Expected expected = formulas(block, grid);
  const int ranks = grid.product();
  const auto runs = testing::run_job(residual.net(), ranks, testing::unpadded);
  const int64_t own = samples / grid.n * block.extent * block.extent * block.wide / (grid.c * grid.r) * 4;
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    const Volumes volumes = volumes_of(runs[static_cast<size_t>(rank)].program);
    auto both = [](int64_t bytes) { return Volume{{bytes}, {bytes}}; };
    EXPECT_EQ(volumes.gathers, both(expected.gathers));
    EXPECT_EQ(volumes.scatters, both(expected.scatters));
    EXPECT_EQ(volumes.statistics, both(expected.statistics));
    EXPECT_EQ(volumes.gradients, both(expected.gradients));
    // The shortcut and its gradient, where it lies elsewhere; and the loss: to the first rank and back.
    const int64_t loss = rank == residual.first_of_loss() ? 4 * (ranks - 1) : 4;
    EXPECT_EQ(volumes.messages, both((residual.shortcut_moves(rank) ? 2 * own : 0) + loss));

    const Traffic counted = runs[static_cast<size_t>(rank)].traffic;
    EXPECT_EQ(counted.sent, volumes.total().sent.count);
    EXPECT_EQ(counted.received, volumes.total().received.count);
  }
}

const std::vector<Degrees> grids{{.r = 2},         {.c = 2},         {.c = 2, .r = 2},
                                 {.n = 2, .r = 2}, {.n = 2, .c = 2}, {.r = 4}};

TEST(Stationary, VolumesOfAConv3BlockAreThePapers) {
  for (const Degrees& grid : grids) expect_formulas({512, 128, 28}, grid);
}

TEST(Stationary, VolumesOfAConv5BlockAreThePapers) {
  for (const Degrees& grid : grids) expect_formulas({2048, 512, 7}, grid);
  expect_formulas({2048, 512, 7}, {.n = 2, .c = 2, .r = 2});
}

// Looks at the program's steps, by the names that its text gives them.
TEST(Stationary, TheProgramNamesItsCollectives) {
  const Residual residual({512, 128, 28}, {.c = 2, .r = 2});
  const Network network = residual.net().build();
  const auto runs = testing::run_job(residual.net(), 4);
  const std::string text = runs[0].program.text(network);
  auto count = [&](std::string_view words) {
    int found = 0;
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(" allgather "), 6) << text;       // of x and of dL/dy
  EXPECT_EQ(count(" reduce-scatter "), 6) << text;  // of y and of dL/dx
}

}  // namespace
}  // namespace cortado
