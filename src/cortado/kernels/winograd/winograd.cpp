#include "cortado/kernels/winograd/winograd.h"

#include <fmt/format.h>

#include "cortado/kernels/bf16_products.h"
#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/winograd/products.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado {

using lowering::ConvolutionProblem;
using lowering::ConvolutionProducts;
using winograd::F2x2;
using winograd::F2x2Of5x5;
using winograd::F4x4;
using winograd::F4x4Of5x5;

namespace {

bool has_taps(const lowering::ConvolutionAxis& axis, int64_t taps) {
  return axis.kernel == taps && axis.stride == 1 && axis.dilation == 1;
}

// The filtering's windows on two axes; a third may only number planes.
template <typename F>
std::optional<ConvolutionProducts> any_products(const ConvolutionProblem& problem, std::string& refusal) {
  const auto& [d, h, w] = problem.axis;
  if (d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.image != d.windows || !has_taps(h, F::taps) ||
      !has_taps(w, F::taps)) {
    refusal = fmt::format("windows other than {0}x{0} with stride 1", F::taps);
  } else {
    using Product = winograd::TileProduct<F>;
    return ConvolutionProducts{std::make_unique<Product>(problem, Product::Direction::forward),
                               std::make_unique<Product>(problem, Product::Direction::backward),
                               std::make_unique<winograd::TileSums<F>>(problem), F::name,
                               lowering::WeightPanels(problem).format()};
  }
  return std::nullopt;
}

// The fewest channels on a side, the fewest tiles, and the smallest part of these that windows fill, which
// pay for the transforms.
struct Least {
  int64_t channels = 16, tiles = 32;
  double filling = 0.625;
};
Least least_of(const ConvolutionProblem& problem, int taps) {
  Least least;
  // oneDNN's bf16 instructions multiply twice as fast as f32's. (Between 13x13 windows, which fill 0.66, they
  // are 1.1 times as fast as F(4x4, 3x3).)
  if (!problem.all_f32() && has_fast_bf16_products())
    least = {.channels = taps > 3 ? 48 : 64, .filling = 0.75};
  // Each group is a product of its own, small between few channels, and oneDNN's with AVX-512 are faster
  // there: 3 times so in 32 groups of 16 channels of 14x14 or of 32 channels of 7x7.
  if (problem.groups > 1 && __builtin_cpu_supports("avx512f")) {
    least.channels = std::max<int64_t>(least.channels, 32);
    least.tiles = 128;
  }
  return least;
}

// Takes problems where it beats implicit-gemm in every pass (docs/results/winograd.md), and F(4x4, 3x3) only
// where it beats F(2x2, 3x3). Between fewer channels the transforms cost as much as the products; tiles that
// hang over the windows, as half of 3 x 3 windows' do, waste what is saved; and few tiles do not pay for the
// transformed filters. 5x5 windows of f32 tensors keep the limits of 3x3 ones. (Forward, 16 to 16 channels of
// 28x28, oneDNN with AVX-512 is 1.5 times as fast, to 32 channels and more slower.)
template <typename F>
std::optional<ConvolutionProducts> faster_products(const ConvolutionProblem& problem, std::string& refusal) {
  const Least least = least_of(problem, F::taps);
  std::optional<ConvolutionProducts> products = any_products<F>(problem, refusal);
  if (!products) return std::nullopt;
  const int64_t channels = std::min(problem.image_channels, problem.window_channels);
  const winograd::TileGrid grid = winograd::forward_grid(problem, F::windows);
  const double windows = static_cast<double>(grid.planes * grid.windows[0] * grid.windows[1]);
  const double filling = windows / (F::windows * F::windows * static_cast<double>(grid.tiles()));
  const std::string tile = fmt::format("{0}x{0}", F::windows);
  if (channels < least.channels) {
    refusal = fmt::format("{} channels are too few", channels);
  } else if (grid.tiles() < least.tiles) {
    refusal = fmt::format("{} tiles of {} windows are too few", grid.tiles(), tile);
  } else if (filling < least.filling) {
    refusal = fmt::format("{}x{} windows waste tiles of {}", grid.windows[0], grid.windows[1], tile);
  } else {
    return products;
  }
  return std::nullopt;
}

KernelOffer make(const Task& task, const lowering::MakeProducts& make_products) {
  if (auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return lowering::make_convolution(task, layer->options(), make_products);
  return {nullptr, fmt::format("{} is no convolution", task.layer().type())};
}

}  // namespace

KernelOffer make_winograd(const Task& task) { return make(task, faster_products<F2x2>); }
KernelOffer make_winograd_4x4(const Task& task) { return make(task, faster_products<F4x4>); }
KernelOffer make_winograd_5x5(const Task& task) { return make(task, faster_products<F2x2Of5x5>); }
KernelOffer make_winograd_4x4_of_5x5(const Task& task) { return make(task, faster_products<F4x4Of5x5>); }
KernelOffer make_winograd_of_any_size(const Task& task) { return make(task, any_products<F2x2>); }
KernelOffer make_winograd_4x4_of_any_size(const Task& task) { return make(task, any_products<F4x4>); }
KernelOffer make_winograd_5x5_of_any_size(const Task& task) { return make(task, any_products<F2x2Of5x5>); }
KernelOffer make_winograd_4x4_of_5x5_of_any_size(const Task& task) {
  return make(task, any_products<F4x4Of5x5>);
}

}  // namespace cortado
