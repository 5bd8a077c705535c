#pragma once

#include <string>
#include <vector>

#include "cortado/layers/precision.h"

namespace cortado {

// Whether this processor has instructions that multiply bf16 numbers, and kernels here use them.
bool has_bf16_products();

// What a user of that precision should know of a processor with or without such products, a line each.
std::vector<std::string> precision_warnings(Precision precision, bool bf16_products = has_bf16_products());

}  // namespace cortado
