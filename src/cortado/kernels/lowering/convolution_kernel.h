#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/lowering/convolution_products.h"
#include "cortado/layers/convolution.h"

namespace cortado::lowering {

// The products for a problem, or the reason why there are none.
using MakeProducts = std::function<std::optional<ConvolutionProducts>(const ConvolutionProblem& problem,
                                                                      std::string& refusal)>;

// The kernel of a layer whose output `gather` makes: a convolution or, by a window as large as the image, an
// inner product.
std::unique_ptr<Kernel> make_gather_kernel(const ChainTail& tail, const Task& task,
                                           ConvolutionProducts products);

KernelOffer make_convolution(const Task& task, const ConvolutionOptions& options,
                             const MakeProducts& make_products);
KernelOffer make_deconvolution(const Task& task, const ConvolutionOptions& options,
                               const MakeProducts& make_products);

}  // namespace cortado::lowering
