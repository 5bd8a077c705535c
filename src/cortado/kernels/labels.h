#pragma once

#include <cstdint>
#include <optional>

namespace cortado {

// The class that a label (or an index into a table) names: the number cut to an integer, or nothing when it
// is the ignored one. Throws UserError naming value and range when it lies outside [0, classes).
std::optional<int64_t> class_of_label(double label, int64_t classes, std::optional<int> ignored = {});

}  // namespace cortado
