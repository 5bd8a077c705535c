#include "cortado/layers/layer.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

Box Layer::input_box(std::span<const Shape> inputs, int input, int, const Box&) const {
  return Box::whole(inputs[input]);
}

Shape Layer::domain(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  if (!outputs.empty()) return outputs[0];
  return inputs.empty() ? Shape{} : inputs[0];
}

Box Layer::output_box(std::span<const Shape> inputs, std::span<const Shape> outputs, int output,
                      const Box& domain_box) const {
  const Shape cut = domain(inputs, outputs);
  Box box = Box::whole(outputs[output]);
  for (int axis = 0; axis < std::min(box.rank(), cut.rank()); ++axis) {
    if (outputs[output][axis] == cut[axis]) box[axis] = domain_box[axis];
  }
  return box;
}

bool Layer::sums(int) const { return false; }

Box Layer::parameter_box(std::span<const Shape> inputs, int parameter, const Box&, const Box&) const {
  return Box::whole(parameters(inputs)[parameter].shape);
}

std::shared_ptr<const Layer> Layer::without_bias() const { return nullptr; }

Cuts Layer::cuts(std::span<const Shape>) const { return {}; }

std::vector<ParameterSpec> Layer::parameters(std::span<const Shape>) const { return {}; }

Flops Layer::forward_flops(std::span<const Shape>, std::span<const Shape> outputs) const {
  Flops total;
  for (const Shape& shape : outputs) total += Flops{static_cast<double>(shape.size())};
  return total;
}

bool Layer::differentiable(int) const { return true; }

double Layer::default_loss_weight(int) const { return 0; }

OutputRule Layer::output_rule(int) const {
  if (products() != Products::none) return OutputRule::bf16;
  return is_source() || default_loss_weight(0) != 0 ? OutputRule::f32 : OutputRule::as_inputs;
}

std::string_view Layer::f32_parts() const {
  return products() != Products::none ? "weights, their gradients and histories" : "";
}

Box read_box(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs, int input,
             const Box& domain_box) {
  Box box = layer.input_box(inputs, input, 0, domain_box);
  for (int k = 1; k < static_cast<int>(outputs.size()); ++k) {
    if (layer.sums(k)) continue;  // reads what output 0 does
    const Box more = layer.input_box(inputs, input, k, layer.output_box(inputs, outputs, k, domain_box));
    if (box.empty()) {
      box = more;
    } else if (!more.empty()) {
      box = box.hull(more);
    }
  }
  return box;
}

void check_count(std::string_view what, size_t count, int low, int high) {
  int n = static_cast<int>(count);
  if (n >= low && (high < 0 || n <= high)) return;
  if (high < 0) throw UserError(fmt::format("needs at least {} {}, has {}", low, what, n));
  if (low == high) throw UserError(fmt::format("needs {} {}, has {}", low, what, n));
  throw UserError(fmt::format("needs {} to {} {}, has {}", low, high, what, n));
}

}  // namespace cortado
