#pragma once

#include <optional>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/layers/layer.h"

namespace cortado {

// One device's share of one layer (or of a chain of layers run as one kernel): what a kernel is made for and
// what a cost model prices. On one device every box is the whole tensor.
struct Task {
  // The layer, then the layers fused after it, e.g. {Convolution, ReLU} or {BatchNorm, Scale, Swish}.
  // Intermediate tensors of a chain do not exist; parameters are those of all layers in order.
  std::vector<LayerPtr> layers;
  Phase phase = Phase::train;
  // Element types of inputs and their gradients, and of outputs and theirs; f32 beyond a list's end.
  std::vector<ElementType> input_types, output_types;
  ElementType parameter_type = ElementType::f32;
  std::vector<Shape> inputs;          // global shapes
  std::vector<Shape> outputs;         // global shapes (of the chain's last layer)
  std::vector<Box> input_boxes;       // held by this device, clipped to the tensor: image borders are padding
  std::vector<Box> output_boxes;      // computed by this device
  std::vector<bool> input_gradients;  // which inputs want a gradient
  std::vector<bool> parameter_gradients;  // which parameters want a gradient
  bool canonical_parameters = false;      // parameters shared between layers stay in the file's order
  Box domain_box;                         // the first layer's share of its domain (Layer::domain)
  bool cut = false;           // several devices share the layer: what it sums, it sums over all of them
  bool local_sums = false;    // batch normalization: over this device's samples alone
  bool f32_products = false;  // weights are not rounded to bf16, though some tensors are
  // Blocks of the layer's output channels and of its samples (layers/sum_blocks.h): sums over these go within
  // blocks, then in a fixed tree over those that the device has. 0: in any order.
  int output_blocks = 0, sample_blocks = 0;

  const Layer& layer() const { return *layers.front(); }
  ElementType input_type(int i) const { return type_in(input_types, i); }
  ElementType output_type(int i) const { return type_in(output_types, i); }
  bool all_f32() const;  // of its tensors
  bool has_backward() const {
    for (bool wanted : input_gradients)
      if (wanted) return true;
    for (bool wanted : parameter_gradients)
      if (wanted) return true;
    return false;
  }
  // The slice of parameter `p` of layer `layer` of the chain. (All layers of a chain have one domain box.)
  Box parameter_box(int layer, int p) const;
  Shape local_input(int i) const { return input_boxes[i].shape(); }
  Shape local_output(int i) const { return output_boxes[i].shape(); }
  // How many of these blocks the device has; 1 where there are none.
  int output_parts() const { return parts_of(output_blocks, 1); }
  int sample_parts() const { return parts_of(sample_blocks, 0); }

 private:
  int parts_of(int blocks, int axis) const {
    return blocks == 0 ? 1 : static_cast<int>(output_boxes[0][axis].size() * blocks / outputs[0][axis]);
  }
  static ElementType type_in(const std::vector<ElementType>& types, int i) {
    return i < static_cast<int>(types.size()) ? types[i] : ElementType::f32;
  }
};

// The task of a whole layer on a single device.
Task whole_task(LayerPtr layer, Phase phase, std::span<const Shape> inputs, int outputs);

// The share of `whole`, a task of one layer on a single device, that computes `domain_box`. Where the summed
// dimension r is cut, `summed` is this device's block of input 0's channels; the layer is then without bias.
Task cut_task(const Task& whole, const Box& domain_box, std::optional<Range> summed = {});
// Makes another share of the whole of it, in place.
void cut_again(Task& task, const Box& domain_box, std::optional<Range> summed = {});

// Says whether any of Task::input_gradients or Task::parameter_gradients is wanted.
bool any_wanted(const std::vector<bool>& gradients);

// Widens the task of a layer with weights to whole samples and images, with the same slice of the weights.
// The result is equal for all replicas of that slice.
Task of_all_replicas(const Task& task);

}  // namespace cortado
