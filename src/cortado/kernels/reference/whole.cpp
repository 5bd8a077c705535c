#include "cortado/kernels/reference/whole.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

void require_whole(const Layer& layer, const std::vector<Shape>& shapes, const std::vector<Box>& boxes) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (boxes[i] == Box::whole(shapes[i])) continue;
    throw UserError(fmt::format("the reference kernel of {} computes whole tensors, not the part {} of {}",
                                layer.type(), boxes[i].text(), shapes[i].text()));
  }
}

}  // namespace

void require_whole_tensors(const Task& task) {
  require_whole(task.layer(), task.inputs, task.input_boxes);
  require_whole(task.layer(), task.outputs, task.output_boxes);
}

}  // namespace cortado
