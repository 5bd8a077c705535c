#include "cortado/layers/problem.h"

#include <algorithm>
#include <fmt/format.h>

namespace cortado {
namespace {

std::string flags(const std::vector<bool>& values) {
  std::string text;
  for (bool value : values) text += value ? '1' : '0';
  return text;
}

// Moves the ranges of samples and channels to 0: where they begin does not change the time. Where rows and
// columns begin may: they can lie at the padding.
std::string text_of(Box box) {
  for (int axis = 0; axis < std::min(box.rank(), 2); ++axis) box[axis] = {0, box[axis].size()};
  return box.text();
}

}  // namespace

std::string key_of(const Layer& layer) {
  return fmt::format("{}({})", layer.type(), layer.options_text(Words::key));
}

std::string problem_of(const Task& task) {
  static_assert(member_count<Task>() == 18, "the text names every member of a task");
  std::string text;
  for (const LayerPtr& layer : task.layers) text += key_of(*layer) + "; ";
  text += task.phase == Phase::train ? "train" : "test";
  for (size_t i = 0; i < task.inputs.size(); ++i)
    text += fmt::format("; in {} {} {}", name_of(task.input_type(static_cast<int>(i))), task.inputs[i].text(),
                        text_of(task.input_boxes[i]));
  for (size_t k = 0; k < task.outputs.size(); ++k)
    text += fmt::format("; out {} {} {}", name_of(task.output_type(static_cast<int>(k))),
                        task.outputs[k].text(), text_of(task.output_boxes[k]));
  if (task.output_blocks + task.sample_blocks > 0)
    text += fmt::format("; blocks {} {}", task.output_blocks, task.sample_blocks);
  return text + fmt::format("; domain {}; gradients {} {}; {}; {}{}{}{}", text_of(task.domain_box),
                            flags(task.input_gradients), flags(task.parameter_gradients),
                            name_of(task.parameter_type), task.cut ? "cut" : "whole",
                            task.canonical_parameters ? " canonical" : "", task.local_sums ? " local" : "",
                            task.f32_products ? " f32 products" : "");
}

std::string problem_of(const Task& task, const std::string& kernels) {
  return problem_of(task) + (kernels.empty() ? "" : "; kernels " + kernels);
}

}  // namespace cortado
