#include "cortado/kernels/lowering/make_lowering.h"

#include <fmt/format.h>

#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/lowering/lowered_products.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {

KernelOffer make_lowering(const Task& task, lowering::LoweringType type,
                          const lowering::LoweringOptions& options) {
  const lowering::MakeProducts products = [&](const lowering::ConvolutionProblem& problem,
                                              std::string& refusal) {
    return lowering::lowered_products(problem, type, options, refusal);
  };
  if (auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return lowering::make_convolution(task, layer->options(), products);
  if (auto* layer = dynamic_cast<const Deconvolution*>(&task.layer()))
    return lowering::make_deconvolution(task, layer->options(), products);
  return {nullptr, fmt::format("{} is no convolution", task.layer().type())};
}

}  // namespace cortado
