#include "cortado/kernels/lowering/implicit_gemm.h"

#include <fmt/format.h>

#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/lowering/inner_product.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {

KernelOffer make_implicit_gemm(const Task& task) {
  const lowering::MakeProducts products = [](const lowering::ConvolutionProblem& problem, std::string&) {
    return std::optional(lowering::implicit_products(problem));
  };
  if (auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return lowering::make_convolution(task, layer->options(), products);
  if (auto* layer = dynamic_cast<const Deconvolution*>(&task.layer()))
    return lowering::make_deconvolution(task, layer->options(), products);
  if (auto* layer = dynamic_cast<const InnerProduct*>(&task.layer()))
    return lowering::make_inner_product(task, layer->options());
  return {nullptr, fmt::format("{} is not a matrix product", task.layer().type())};
}

}  // namespace cortado
