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

LabelClasses::LabelClasses(const Task& task, int axis, std::optional<int> ignored)
    : classes_(task.inputs[0][task.inputs[0].canonical_axis(axis)]),
      own_(task.domain_box[task.inputs[0].canonical_axis(axis)]),
      ignored_(ignored) {}

std::optional<int64_t> LabelClasses::of_label(double label) const {
  std::optional<int64_t> index = class_of_label(label, classes_, ignored_);
  return index && *index >= own_.begin && *index < own_.end ? index : std::nullopt;
}

}  // namespace cortado
