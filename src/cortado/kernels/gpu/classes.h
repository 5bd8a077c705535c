#pragma once

#include <optional>
#include <string>

#include "cortado/kernels/gpu/part.h"
#include "cortado/kernels/labels.h"

namespace cortado::gpu {

// The class that a label names, for scores of which each row of classes is contiguous. Where LabelClasses
// would throw, it is `wrong`.
struct RowClasses {
  static constexpr int ignored_or_others = -1, wrong = -2;
  SpokenOrder labels;
  int64_t classes, own_begin, own_end;
  bool ignores;
  int64_t ignored;

  RowClasses(const Task& task, int axis, std::optional<int> ignore)
      : labels(task.local_input(1)),
        classes(task.inputs[0][task.inputs[0].canonical_axis(axis)]),
        ignores(ignore.has_value()),
        ignored(ignore.value_or(0)) {
    const Range own = LabelClasses(task, axis, ignore).own();
    own_begin = own.begin, own_end = own.end;
  }
  // `label`: of all rows, in the labels' memory.
  CORTADO_EVERYWHERE int of(const float* label, int64_t row) const {
    const float value = label[labels.offset(row)];
    if (!(value > -2147483648.0F && value < 2147483648.0F)) return wrong;
    const auto index = static_cast<int64_t>(value);
    if (ignores && index == ignored) return ignored_or_others;
    if (index < 0 || index >= classes) return wrong;
    return index >= own_begin && index < own_end ? static_cast<int>(index) : ignored_or_others;
  }
};

// The class that a label names, of so many; -1: none.
CORTADO_EVERYWHERE inline int64_t named_class(float label, int64_t classes) {
  if (!(label > -1 && label < static_cast<float>(classes))) return -1;
  return static_cast<int64_t>(label);
}

// Why rows of classes are not contiguous in the scores' memory, in the order of the labels; empty: they are.
inline std::string class_axis_refusal(const Shape& scores, int axis) {
  const bool contiguous = scores.canonical_axis(axis) == (scores.rank() > 2 ? 1 : scores.rank() - 1);
  return contiguous ? "" : "the class axis is not contiguous in memory";
}

}  // namespace cortado::gpu
