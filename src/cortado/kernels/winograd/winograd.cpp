#include "cortado/kernels/winograd/winograd.h"

#include <fmt/format.h>

#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/winograd/products.h"
#include "cortado/kernels/winograd/transforms.h"

namespace cortado {

using lowering::ConvolutionProblem;
using lowering::ConvolutionProducts;
using winograd::F2x2;
using winograd::F4x4;

namespace {

bool is_three(const lowering::ConvolutionAxis& axis) {
  return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
}

// 3 x 3 windows on two axes; a third may only number planes.
template <typename F>
std::optional<ConvolutionProducts> any_products(const ConvolutionProblem& problem, std::string& refusal) {
  const auto& [d, h, w] = problem.axis;
  if (d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.image != d.windows || !is_three(h) || !is_three(w)) {
    refusal = "windows other than 3x3 with stride 1";
  } else {
    using Product = winograd::TileProduct<F>;
    return ConvolutionProducts{std::make_unique<Product>(problem, Product::Direction::forward),
                               std::make_unique<Product>(problem, Product::Direction::backward),
                               std::make_unique<winograd::TileSums<F>>(problem), F::name,
                               lowering::WeightPanels(problem).format()};
  }
  return std::nullopt;
}

// Where it beats implicit-gemm in every pass (docs/benchmarks.md), and F(4x4) F(2x2). Between fewer channels
// the transforms cost as much as the products; tiles that hang over the windows, as half of 3 x 3 windows'
// do, waste what is saved; and few tiles do not pay for the transformed filters.
template <typename F>
std::optional<ConvolutionProducts> faster_products(const ConvolutionProblem& problem, std::string& refusal) {
  constexpr int64_t least_channels = 16, least_tiles = 32;
  constexpr double least_filling = 0.625;
  std::optional<ConvolutionProducts> products = any_products<F>(problem, refusal);
  if (!products) return std::nullopt;
  const int64_t channels = std::min(problem.image_channels, problem.window_channels);
  const winograd::TileGrid grid = winograd::forward_grid(problem, F::windows);
  const double windows = static_cast<double>(grid.planes * grid.windows[0] * grid.windows[1]);
  const double filling = windows / (F::windows * F::windows * static_cast<double>(grid.tiles()));
  const std::string tile = fmt::format("{0}x{0}", F::windows);
  if (channels < least_channels) {
    refusal = fmt::format("{} channels are too few", channels);
  } else if (grid.tiles() < least_tiles) {
    refusal = fmt::format("{} tiles of {} windows are too few", grid.tiles(), tile);
  } else if (filling < least_filling) {
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
KernelOffer make_winograd_of_any_size(const Task& task) { return make(task, any_products<F2x2>); }
KernelOffer make_winograd_4x4_of_any_size(const Task& task) { return make(task, any_products<F4x4>); }

}  // namespace cortado
