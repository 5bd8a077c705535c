#include "cortado/kernels/lowering/implicit_gemm.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/kernels/lowering/convolution_kernel.h"
#include "cortado/kernels/lowering/inner_product.h"
#include "cortado/kernels/native/few_outputs.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {

namespace {

// Products of tensors in bf16 are of rows that read one run of the image each.
bool takes_bf16(const lowering::ConvolutionProblem& problem) {
  return problem.groups == 1 && problem.image_parts == 1 &&
         std::ranges::all_of(problem.axis,
                             [](const lowering::ConvolutionAxis& axis) { return axis.kernel == 1; });
}

}  // namespace

KernelOffer make_implicit_gemm(const Task& task) {
  if (native::has_few_outputs(task)) return {nullptr, "bf16 of few outputs"};
  const lowering::MakeProducts products =
      [](const lowering::ConvolutionProblem& problem,
         std::string& refusal) -> std::optional<lowering::ConvolutionProducts> {
    if (problem.all_f32() || takes_bf16(problem)) return lowering::implicit_products(problem);
    refusal = "bf16 in windows or groups";
    return std::nullopt;
  };
  if (auto* layer = dynamic_cast<const Convolution*>(&task.layer()))
    return lowering::make_convolution(task, layer->options(), products);
  if (!task.all_f32()) return {nullptr, "bf16 in another layer than a convolution"};
  if (auto* layer = dynamic_cast<const Deconvolution*>(&task.layer()))
    return lowering::make_deconvolution(task, layer->options(), products);
  if (auto* layer = dynamic_cast<const InnerProduct*>(&task.layer()))
    return lowering::make_inner_product(task, layer->options());
  return {nullptr, fmt::format("{} is not a matrix product", task.layer().type())};
}

}  // namespace cortado
