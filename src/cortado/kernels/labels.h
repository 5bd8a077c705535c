#pragma once

#include <cstdint>
#include <optional>

#include "cortado/layers/task.h"

namespace cortado {

// The class that a label (or an index into a table) names: the number cut to an integer, or nothing when it
// is the ignored one. Throws UserError naming value and range when it lies outside [0, classes).
std::optional<int64_t> class_of_label(double label, int64_t classes, std::optional<int> ignored = {});

// The classes of a layer whose labels name indices along an axis of input 0. Where that axis is cut, each
// device reads the scores of all classes and answers for the labels of its own block.
class LabelClasses {
 public:
  LabelClasses(const Task& task, int axis, std::optional<int> ignored);
  Range own() const { return own_; }
  // The class of a label; nothing if it is ignored, or another device answers for it.
  std::optional<int64_t> of_label(double label) const;

 private:
  int64_t classes_;
  Range own_;
  std::optional<int> ignored_;
};

}  // namespace cortado
