#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/convolution_products.h"
#include "cortado/layers/convolution.h"

namespace cortado::lowering {

// The products for a problem, or the reason why there are none.
using MakeProducts = std::function<std::optional<ConvolutionProducts>(const ConvolutionProblem& problem,
                                                                      std::string& refusal)>;

KernelOffer make_convolution(const Task& task, const ConvolutionOptions& options,
                             const MakeProducts& make_products);
KernelOffer make_deconvolution(const Task& task, const ConvolutionOptions& options,
                               const MakeProducts& make_products);

}  // namespace cortado::lowering
