#include "cortado/layers/task.h"

#include <algorithm>

namespace cortado {

Box Task::parameter_box(int index, int p) const {
  if (index == 0)
    return layers[0]->parameter_box(inputs, p, domain_box, input_boxes.empty() ? Box{} : input_boxes[0]);
  const Shape between = layers[0]->domain(inputs, layers[0]->output_shapes(inputs, 1));
  return layers[index]->parameter_box({&between, 1}, p, domain_box, domain_box);
}

bool Task::all_f32() const {
  auto f32 = [](ElementType type) { return type == ElementType::f32; };
  return std::ranges::all_of(input_types, f32) && std::ranges::all_of(output_types, f32);
}

Task whole_task(LayerPtr layer, Phase phase, std::span<const Shape> inputs, int outputs) {
  Task task;
  task.phase = phase;
  task.inputs.assign(inputs.begin(), inputs.end());
  task.outputs = layer->output_shapes(inputs, outputs);
  task.domain_box = Box::whole(layer->domain(task.inputs, task.outputs));
  for (const Shape& shape : task.inputs) task.input_boxes.push_back(Box::whole(shape));
  for (const Shape& shape : task.outputs) task.output_boxes.push_back(Box::whole(shape));
  for (size_t i = 0; i < inputs.size(); ++i) {
    task.input_gradients.push_back(phase == Phase::train && layer->differentiable(static_cast<int>(i)));
  }
  for (const ParameterSpec& spec : layer->parameters(inputs)) {
    task.parameter_gradients.push_back(phase == Phase::train && spec.learnable);
  }
  task.layers = {std::move(layer)};
  return task;
}

Task cut_task(const Task& whole, const Box& domain_box, std::optional<Range> summed) {
  Task task = whole;
  cut_again(task, domain_box, summed);
  return task;
}

void cut_again(Task& task, const Box& domain_box, std::optional<Range> summed) {
  const Layer& layer = task.layer();
  task.cut = true;
  task.domain_box = domain_box;
  for (size_t k = 0; k < task.outputs.size(); ++k) {
    task.output_boxes[k] = layer.output_box(task.inputs, task.outputs, static_cast<int>(k), domain_box);
  }
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    task.input_boxes[i] = read_box(layer, task.inputs, task.outputs, static_cast<int>(i), domain_box);
  }
  if (summed) task.input_boxes[0][1] = *summed;
}

bool any_wanted(const std::vector<bool>& gradients) {
  return std::ranges::find(gradients, true) != gradients.end();
}

Task of_all_replicas(const Task& task) {
  Task whole = task;
  auto widen = [](Box& box, const Shape& shape) {
    Range channels = box[1];
    box = Box::whole(shape);
    box[1] = channels;
  };
  widen(whole.output_boxes[0], task.outputs[0]);
  widen(whole.input_boxes[0], task.inputs[0]);
  for (size_t i = 1; i < task.inputs.size(); ++i) whole.input_boxes[i] = whole.output_boxes[0];
  whole.domain_box = whole.output_boxes[0];
  return whole;
}

}  // namespace cortado
