#include "cortado/kernels/winograd/winograd.h"

#include <fmt/format.h>

#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/winograd/products.h"

namespace cortado {

using lowering::ConvolutionProblem;
using lowering::ConvolutionProducts;

namespace {

bool is_three(const lowering::ConvolutionAxis& axis) {
  return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
}

// 3 x 3 windows on two axes; a third may only number planes.
std::optional<ConvolutionProducts> any_products(const ConvolutionProblem& problem, std::string& refusal) {
  const auto& [d, h, w] = problem.axis;
  if (d.kernel != 1 || d.stride != 1 || d.pad != 0 || d.image != d.windows || !is_three(h) || !is_three(w)) {
    refusal = "windows other than 3x3 with stride 1";
  } else if (problem.groups != 1) {
    refusal = fmt::format("{} groups", problem.groups);
  } else {
    using winograd::TileProduct;
    return ConvolutionProducts{std::make_unique<TileProduct>(problem, TileProduct::Direction::forward),
                               std::make_unique<TileProduct>(problem, TileProduct::Direction::backward),
                               std::make_unique<winograd::TileSums>(problem), "winograd"};
  }
  return std::nullopt;
}

std::optional<ConvolutionProducts> faster_products(const ConvolutionProblem& problem, std::string& refusal) {
  constexpr int64_t least_channels = 16;
  const int64_t channels = std::min(problem.image_channels, problem.window_channels);
  if (channels < least_channels) {
    refusal = fmt::format("{} channels", channels);
    return std::nullopt;
  }
  return any_products(problem, refusal);
}

KernelOffer make(const Task& task, const lowering::MakeProducts& make_products) {
  if (auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return lowering::make_convolution(task, layer->options(), make_products);
  return {nullptr, fmt::format("{} is no convolution", task.layer().type())};
}

}  // namespace

KernelOffer make_winograd(const Task& task) { return make(task, faster_products); }
KernelOffer make_winograd_of_any_size(const Task& task) { return make(task, any_products); }

}  // namespace cortado
