#include "cortado/kernels/labels.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::optional<int64_t> class_of_label(double label, int64_t classes, std::optional<int> ignored) {
  constexpr double limit = 2147483648.0;
  if (label > -limit && label < limit) {
    int64_t index = static_cast<int64_t>(label);
    if (ignored && index == *ignored) return {};
    if (index >= 0 && index < classes) return index;
  }
  throw UserError(
      fmt::format("label {} is outside [0, {}): the layer has {} classes", label, classes, classes));
}

}  // namespace cortado
