#pragma once

#include <optional>
#include <string>

#include "cortado/kernels/lowering/convolution_products.h"
#include "cortado/kernels/lowering/lowering_options.h"
#include "cortado/kernels/lowering/lowering_type.h"

namespace cortado::lowering {

// Lower, multiply by BLAS, lift (Caffe con Troll, section 2.1), over parts of the batch as the options say.
// Nothing, and the reason, where one sample needs more memory than the options allow.
std::optional<ConvolutionProducts> lowered_products(const ConvolutionProblem& problem, LoweringType type,
                                                    const LoweringOptions& options, std::string& refusal);

}  // namespace cortado::lowering
