#include "cortado/layers/task.h"

namespace cortado {

Box Task::parameter_box(int index, int p) const {
  if (index == 0)
    return layers[0]->parameter_box(inputs, p, domain_box, input_boxes.empty() ? Box{} : input_boxes[0]);
  const Shape between = layers[0]->domain(inputs, layers[0]->output_shapes(inputs, 1));
  return layers[index]->parameter_box({&between, 1}, p, domain_box, domain_box);
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

}  // namespace cortado
