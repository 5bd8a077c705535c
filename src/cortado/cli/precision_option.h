#pragma once

#include <CLI/App.hpp>

#include "cortado/layers/precision.h"

namespace cortado {

// --precision f32 or bf16.
void add_precision_option(CLI::App& command, Precision& precision);

}  // namespace cortado
