#pragma once

#include <string>

#include "cortado/train/compare_cut.h"

namespace cortado {

// Tables of how far a cut training is from the uncut one: layer by layer, and of the losses.
std::string comparison_text(const CutComparison& comparison);
std::string comparison_json(const CutComparison& comparison, const std::string& strategy, int ranks);

}  // namespace cortado
