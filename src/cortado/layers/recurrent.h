#pragma once

#include "cortado/layers/layer_of.h"

namespace cortado {

struct RecurrentOptions {
  enum class Kind { lstm, rnn };
  Kind kind = Kind::lstm;
  int64_t num_output = 0;
  bool expose_hidden = false;  // states come in and go out as further inputs and outputs
  Filler weight_filler, bias_filler;
  static constexpr auto fields =
      std::tuple{field("kind", &RecurrentOptions::kind), field("num_output", &RecurrentOptions::num_output),
                 field("expose_hidden", &RecurrentOptions::expose_hidden),
                 unkeyed_field("weight_filler", &RecurrentOptions::weight_filler),
                 unkeyed_field("bias_filler", &RecurrentOptions::bias_filler)};
};

// Caffe's LSTM and RNN (Donahue et al., "Long-term Recurrent Convolutional Networks", 2015) over T time steps
// of N sequences, with D = num_output. `cont` is 0 where a sequence begins: what came before is forgotten.
//
//   LSTM:  i, f, o = sigmoid and g = tanh of the four blocks of a
//          c(t) = i g + cont(t) f c(t-1),  y(t) = h(t) = o tanh(c(t))
//   RNN:   h(t) = tanh(a),  y(t) = tanh(output_weight h(t) + output_bias)
//   both:  a = input_weight x(t) + bias + static_weight s + hidden_weight (cont(t) h(t-1))
//
// Inputs: x, T x N x ... (I elements a step); cont, T x N; a static input s, N x ... (S elements), if there
// is one more; with expose_hidden the states before the first step, each 1 x N x D: h and, for LSTM, c.
// Outputs: y, T x N x D; with expose_hidden the states after the last step. Without it a batch goes on from
// the states that the batch before left, zero at first.
// Parameters, in Caffe's order: input_weight G D x I, bias G D, static_weight G D x S, hidden_weight G D x D,
// where G is 4 (i, f, o, g) or, for RNN, 1; for RNN also output_weight D x D, output_bias D.
class Recurrent : public LayerOf<RecurrentOptions> {
 public:
  explicit Recurrent(RecurrentOptions options);

  std::string_view type() const override;
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int outputs) const override;
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override;
  // Axis 1 of the output, the sequences.
  Cuts cuts(std::span<const Shape>) const override { return {.c = true}; }
  std::vector<ParameterSpec> parameters(std::span<const Shape> inputs) const override;
  Flops forward_flops(std::span<const Shape> inputs, std::span<const Shape> outputs) const override;
  bool differentiable(int input) const override { return input != 1; }
  std::string_view f32_parts() const override { return "states and weights, their gradients and histories"; }

  bool is_lstm() const { return options_.kind == RecurrentOptions::Kind::lstm; }
  int gates() const { return is_lstm() ? 4 : 1; }
  int states() const { return is_lstm() ? 2 : 1; }
  bool has_static(size_t inputs) const { return inputs == 3 + exposed(); }
  // The input that holds state `state` before the first step.
  int state_input(size_t inputs, int state) const { return static_cast<int>(inputs) - states() + state; }

 private:
  size_t exposed() const { return options_.expose_hidden ? states() : 0; }
};

}  // namespace cortado
