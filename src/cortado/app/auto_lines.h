#pragma once

#include "cortado/auto/choose_strategy.h"

namespace cortado {

// Prints what `--strategy auto` chose and why.
void print_choice(const AutoChoice& choice);

}  // namespace cortado
