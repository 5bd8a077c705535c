#pragma once

#include <optional>

#include "cortado/base/units.h"

namespace cortado {

// R = 100 * sum(T_c - T_b) / sum(T_c), the share of communication that is hidden under computing (Lee et al.,
// HiPC 2017, Eq. 11), where sum(T_c) is how long messages took, one by one, and sum(T_b) for how long the
// compute lane stood still for them. At least 0; nothing where there is no communication.
std::optional<double> overlap_ratio(Seconds communication, Seconds exposed);

}  // namespace cortado
