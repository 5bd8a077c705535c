#include "cortado/layers/recurrent.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

void check_shape(std::string_view what, const Shape& shape, const Shape& expected) {
  if (shape == expected) return;
  throw UserError(fmt::format("{} must have shape {}, has {}", what, expected.text(), shape.text()));
}

}  // namespace

Recurrent::Recurrent(RecurrentOptions options) : LayerOf(std::move(options)) {
  if (options_.num_output < 1)
    throw UserError(fmt::format("num_output must be positive, is {}", options_.num_output));
}

std::string_view Recurrent::type() const { return is_lstm() ? "LSTM" : "RNN"; }

std::vector<Shape> Recurrent::output_shapes(std::span<const Shape> inputs, int outputs) const {
  const int states = static_cast<int>(exposed());
  check_count("inputs", inputs.size(), 2 + states, 3 + states);
  check_count("outputs", outputs, 1 + states, 1 + states);
  const Shape& x = inputs[0];
  if (x.rank() < 3 || x.size() == 0)
    throw UserError(fmt::format(
        "input 1 must be of shape time steps x sequences x features, is {}; reshape it", x.text()));
  check_shape("the sequence indicators, input 2,", inputs[1], {x[0], x[1]});
  if (has_static(inputs.size()) && (inputs[2].rank() < 1 || inputs[2][0] != x[1] || inputs[2].size() == 0))
    throw UserError(fmt::format("the static input, of shape {}, must have a row for each of the {} sequences",
                                inputs[2].text(), x[1]));
  const Shape state{1, x[1], options_.num_output};
  std::vector<Shape> shapes{{x[0], x[1], options_.num_output}};
  for (int i = 0; i < states; ++i) {
    check_shape("a state", inputs[state_input(inputs.size(), i)], state);
    shapes.push_back(state);
  }
  return shapes;
}

Box Recurrent::input_box(std::span<const Shape> inputs, int input, int, const Box& output_box) const {
  Box box = Box::whole(inputs[input]);
  const bool of_sequences = input == 2 && has_static(inputs.size());
  box[of_sequences ? 0 : 1] = output_box[1];
  return box;
}

std::vector<ParameterSpec> Recurrent::parameters(std::span<const Shape> inputs) const {
  const int64_t outputs = options_.num_output, rows = gates() * outputs;
  std::vector<ParameterSpec> specs{{"input_weight", {rows, inputs[0].count(2)}, options_.weight_filler},
                                   {"bias", {rows}, options_.bias_filler}};
  if (has_static(inputs.size()))
    specs.push_back({"static_weight", {rows, inputs[2].count(1)}, options_.weight_filler});
  specs.push_back({"hidden_weight", {rows, outputs}, options_.weight_filler});
  if (is_lstm()) return specs;
  specs.push_back({"output_weight", {outputs, outputs}, options_.weight_filler});
  specs.push_back({"output_bias", {outputs}, options_.bias_filler});
  return specs;
}

Flops Recurrent::forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const {
  double weights = 0;
  for (const ParameterSpec& spec : parameters(inputs)) weights += static_cast<double>(spec.shape.size());
  return {2 * weights * static_cast<double>(outputs[0].count(0, 2))};
}

}  // namespace cortado
