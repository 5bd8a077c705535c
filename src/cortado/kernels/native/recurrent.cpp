#include "cortado/layers/recurrent.h"

#include <algorithm>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/lowering/blas.h"
#include "cortado/kernels/native/elementwise.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/vector_math.h"

namespace cortado {
namespace native {
namespace {

using lowering::Factor;

template <typename V>
V carried_sigmoid(V x) {
  return carry(sigmoid(x), x);
}
template <typename V>
V carried_tanh(V x) {
  return carry(tanh(x), x);
}

// Matrix products of oneDNN. In memory x, y and states of a step are matrices of features by sequences, since
// axis 1 is the last one there; so are the gates here. No tensor is moved.
class RecurrentKernel : public Kernel {
 public:
  explicit RecurrentKernel(const Task& task)
      : layer_(dynamic_cast<const Recurrent&>(task.layer())),
        lstm_(layer_.is_lstm()),
        exposed_(layer_.options().expose_hidden),
        inputs_(task.inputs.size()),
        steps_(task.outputs[0][0]),
        sequences_(task.local_output(0)[1]),
        outputs_(task.outputs[0][2]),
        rows_(layer_.gates() * outputs_),
        features_(task.inputs[0].count(2)),
        static_features_(layer_.has_static(inputs_) ? task.inputs[2].count(1) : 0),
        hidden_weight_(static_features_ > 0 ? 3 : 2),
        carried_(layer_.states() * state_size()) {}

  std::string name() const override { return "native recurrent"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = true}; }
  Bytes saved_bytes() const override {
    return floats_of(steps_ * gates_size() + (steps_ + 1) * state_size() * layer_.states());
  }
  Bytes scratch_bytes() const override { return floats_of((steps_ + 1) * gates_size() + 5 * state_size()); }

  void forward(const Arguments& a) override {
    const Kept kept = kept_of(a);
    const Scratch scratch = scratch_of(a);
    if (!a.again) begun_ = carried_;
    for (int state = 0; state < layer_.states(); ++state) {
      const float* from =
          exposed_ ? a.inputs[layer_.state_input(inputs_, state)] : &begun_[state * state_size()];
      std::copy_n(from, state_size(), state == 0 ? kept.hidden : kept.cell);
    }
    fill_constant_sums(a, scratch.constant);
    for (int64_t t = 0; t < steps_; ++t) {
      float* gates = kept.gates + t * gates_size();
      std::copy_n(scratch.constant, gates_size(), gates);
      product(rows_, sequences_, features_, {a.parameters[0], features_}, step_of_x(a.inputs[0], t), 1,
              gates);
      see(a, t, kept.hidden + t * state_size(), scratch.seen);
      product(rows_, sequences_, outputs_, {a.parameters[hidden_weight_], outputs_},
              {scratch.seen, sequences_}, 1, gates);
      if (lstm_)
        lstm_step(a, kept, scratch, t);
      else
        rnn_step(a, kept, t);
    }
    for (int state = 0; state < layer_.states(); ++state) {
      const float* last = (state == 0 ? kept.hidden : kept.cell) + steps_ * state_size();
      std::copy_n(last, state_size(), exposed_ ? a.outputs[1 + state] : &carried_[state * state_size()]);
    }
  }

  void backward(const Arguments& a) override {
    const Kept kept = kept_of(a);
    const Scratch scratch = scratch_of(a);
    for (int state = 0; state < layer_.states(); ++state) {
      const float* given = exposed_ ? a.output_gradients[1 + state] : nullptr;
      float* to = state == 0 ? scratch.hidden : scratch.cell;
      if (given)
        std::copy_n(given, state_size(), to);
      else
        std::fill_n(to, state_size(), 0.0f);
    }
    for (int64_t t = steps_ - 1; t >= 0; --t) backward_step(a, kept, scratch, t);
    for (int state = 0; exposed_ && state < layer_.states(); ++state) {
      float* to = a.input_gradients[layer_.state_input(inputs_, state)];
      if (to) std::copy_n(state == 0 ? scratch.hidden : scratch.cell, state_size(), to);
    }
    sum_static_gradients(a, scratch);
    if (a.parameter_gradients[1]) sum_rows(scratch.gates, rows_, steps_, a.parameter_gradients[1]);
  }

 private:
  // Of the states, step 0 is what was there before the first one.
  struct Kept {
    float *gates, *hidden, *cell;
  };
  // `gates`: gradients of the gates before their functions, of all steps; `hidden`, `cell`: of the states
  // after the step that is computed; `constant`: what the gates of every step have in common; `seen`,
  // `seen_cell`: states as the next step sees them; `outputs`: gradients of an RNN's outputs before tanh.
  struct Scratch {
    float *constant, *seen, *seen_cell, *hidden, *cell, *outputs, *gates;
  };

  static Bytes floats_of(int64_t count) { return {count * int64_t{sizeof(float)}}; }
  int64_t state_size() const { return outputs_ * sequences_; }
  int64_t gates_size() const { return rows_ * sequences_; }
  Kept kept_of(const Arguments& a) const {
    auto* gates = reinterpret_cast<float*>(a.saved);
    float* hidden = gates + steps_ * gates_size();
    return {gates, hidden, hidden + (steps_ + 1) * state_size()};
  }
  Scratch scratch_of(const Arguments& a) const {
    auto* constant = reinterpret_cast<float*>(a.scratch);
    float* states = constant + gates_size();
    const int64_t size = state_size();
    return {constant,          states,           states + size, states + 2 * size, states + 3 * size,
            states + 4 * size, states + 5 * size};
  }
  Factor step_of_x(const float* x, int64_t t, bool transposed = false) const {
    return {x + t * features_ * sequences_, sequences_, transposed};
  }
  static void product(int64_t rows, int64_t columns, int64_t depth, Factor a, Factor b, float beta,
                      float* to) {
    lowering::multiply(lowering::Blas::onednn, rows, columns, depth, a, b, beta, to, columns);
  }

  // The bias and, where there is one, the product of the static input.
  void fill_constant_sums(const Arguments& a, float* constant) const {
    for (int64_t row = 0; row < rows_; ++row)
      std::fill_n(constant + row * sequences_, sequences_, a.parameters[1][row]);
    if (static_features_ > 0)
      product(rows_, sequences_, static_features_, {a.parameters[2], static_features_},
              {a.inputs[2], static_features_, true}, 1, constant);
  }

  // What step t sees of a state, or of its gradient what the step before it does.
  void see(const Arguments& a, int64_t t, const float* state, float* to) const {
    const float* cont = a.inputs[1] + t * sequences_;
    parallel_for(outputs_, [&](int64_t d) {
      by_lanes(0, sequences_, [&]<typename V>(int64_t n) {
        const V factor = load<V>(cont + n), value = load<V>(state + d * sequences_ + n);
        store(to + d * sequences_ + n, factor == 0 ? V{} : factor * value);
      });
    });
  }

  template <typename Work>
  void for_each_unit(Work&& work) const {
    parallel_ranges(state_size(), [&](int64_t begin, int64_t end) { by_lanes(begin, end, work); });
  }

  void lstm_step(const Arguments& a, const Kept& kept, const Scratch& scratch, int64_t t) const {
    const int64_t size = state_size();
    see(a, t, kept.cell + t * size, scratch.seen_cell);
    float *gates = kept.gates + t * gates_size(), *y = a.outputs[0] + t * size;
    float *hidden = kept.hidden + (t + 1) * size, *cell = kept.cell + (t + 1) * size;
    for_each_unit([&]<typename V>(int64_t u) {
      const V i = carried_sigmoid(load<V>(gates + u)), f = carried_sigmoid(load<V>(gates + size + u)),
              o = carried_sigmoid(load<V>(gates + 2 * size + u)),
              g = carried_tanh(load<V>(gates + 3 * size + u));
      const V c = i * g + f * load<V>(scratch.seen_cell + u), h = o * carried_tanh(c);
      store(gates + u, i), store(gates + size + u, f);
      store(gates + 2 * size + u, o), store(gates + 3 * size + u, g);
      store(cell + u, c), store(hidden + u, h), store(y + u, h);
    });
  }

  void rnn_step(const Arguments& a, const Kept& kept, int64_t t) const {
    const int64_t size = state_size();
    float *gates = kept.gates + t * size, *hidden = kept.hidden + (t + 1) * size;
    float* y = a.outputs[0] + t * size;
    for_each_unit([&]<typename V>(int64_t u) {
      const V h = carried_tanh(load<V>(gates + u));
      store(gates + u, h), store(hidden + u, h);
    });
    for (int64_t o = 0; o < outputs_; ++o)
      std::fill_n(y + o * sequences_, sequences_, a.parameters[hidden_weight_ + 2][o]);
    product(outputs_, sequences_, outputs_, {a.parameters[hidden_weight_ + 1], outputs_},
            {hidden, sequences_}, 1, y);
    for_each_unit([&]<typename V>(int64_t u) { store(y + u, carried_tanh(load<V>(y + u))); });
  }

  void backward_step(const Arguments& a, const Kept& kept, const Scratch& scratch, int64_t t) const {
    if (lstm_)
      lstm_gates(a, kept, scratch, t);
    else
      rnn_gates(a, kept, scratch, t);
    const float* gates = scratch.gates + t * gates_size();
    const Factor gradient{gates, sequences_};
    const bool adds = t != steps_ - 1;
    if (float* to = a.parameter_gradients[0])
      product(rows_, features_, sequences_, gradient, step_of_x(a.inputs[0], t, true), adds, to);
    if (float* to = a.parameter_gradients[hidden_weight_]) {
      see(a, t, kept.hidden + t * state_size(), scratch.seen);
      product(rows_, outputs_, sequences_, gradient, {scratch.seen, sequences_, true}, adds, to);
    }
    if (float* to = a.input_gradients[0])
      product(features_, sequences_, rows_, {a.parameters[0], features_, true}, gradient, 0,
              to + t * features_ * sequences_);
    product(outputs_, sequences_, rows_, {a.parameters[hidden_weight_], outputs_, true}, gradient, 0,
            scratch.seen);
    see(a, t, scratch.seen, scratch.hidden);
  }

  void lstm_gates(const Arguments& a, const Kept& kept, const Scratch& scratch, int64_t t) const {
    const int64_t size = state_size();
    see(a, t, kept.cell + t * size, scratch.seen_cell);
    const float *gates = kept.gates + t * gates_size(), *cell = kept.cell + (t + 1) * size;
    const float* dy = a.output_gradients[0] ? a.output_gradients[0] + t * size : nullptr;
    float* gradient = scratch.gates + t * gates_size();
    for_each_unit([&]<typename V>(int64_t u) {
      const V i = load<V>(gates + u), f = load<V>(gates + size + u), o = load<V>(gates + 2 * size + u),
              g = load<V>(gates + 3 * size + u), c = carried_tanh(load<V>(cell + u));
      V hidden = load<V>(scratch.hidden + u);
      if (dy) hidden = hidden + load<V>(dy + u);
      const V of_cell = load<V>(scratch.cell + u) + hidden * o * (1 - c * c);
      store(gradient + u, of_cell * g * i * (1 - i));
      store(gradient + size + u, of_cell * load<V>(scratch.seen_cell + u) * f * (1 - f));
      store(gradient + 2 * size + u, hidden * c * o * (1 - o));
      store(gradient + 3 * size + u, of_cell * i * (1 - g * g));
      store(scratch.seen + u, of_cell * f);
    });
    see(a, t, scratch.seen, scratch.cell);
  }

  void rnn_gates(const Arguments& a, const Kept& kept, const Scratch& scratch, int64_t t) const {
    const int64_t size = state_size();
    const float *h = kept.gates + t * size, *y = a.outputs[0] + t * size;
    const float* dy = a.output_gradients[0] ? a.output_gradients[0] + t * size : nullptr;
    for_each_unit([&]<typename V>(int64_t u) {
      const V value = load<V>(y + u);
      store(scratch.outputs + u, dy ? load<V>(dy + u) * (1 - value * value) : V{});
    });
    const Factor gradient{scratch.outputs, sequences_};
    const int weight = hidden_weight_ + 1;
    const bool adds = t != steps_ - 1;
    product(outputs_, sequences_, outputs_, {a.parameters[weight], outputs_, true}, gradient, 1,
            scratch.hidden);
    if (float* to = a.parameter_gradients[weight])
      product(outputs_, outputs_, sequences_, gradient, {h, sequences_, true}, adds, to);
    if (float* to = a.parameter_gradients[weight + 1]) {
      if (!adds) std::fill_n(to, outputs_, 0.0f);
      for (int64_t o = 0; o < outputs_; ++o) to[o] += row_sum(scratch.outputs + o * sequences_);
    }
    float* gates = scratch.gates + t * size;
    for_each_unit([&]<typename V>(int64_t u) {
      const V value = load<V>(h + u);
      store(gates + u, load<V>(scratch.hidden + u) * (1 - value * value));
    });
  }

  float row_sum(const float* row) const {
    double sum = 0;
    for (int64_t n = 0; n < sequences_; ++n) sum += row[n];
    return static_cast<float>(sum);
  }

  // Sums each row of the matrices of all steps.
  void sum_rows(const float* matrices, int64_t rows, int64_t steps, float* to) const {
    parallel_for(rows, [&](int64_t row) {
      double sum = 0;
      for (int64_t t = 0; t < steps; ++t) sum += row_sum(matrices + (t * rows + row) * sequences_);
      to[row] = static_cast<float>(sum);
    });
  }

  void sum_static_gradients(const Arguments& a, const Scratch& scratch) const {
    if (static_features_ == 0) return;
    float* sums = scratch.constant;  // over the steps
    std::copy_n(scratch.gates, gates_size(), sums);
    for (int64_t t = 1; t < steps_; ++t)
      for (int64_t i = 0; i < gates_size(); ++i) sums[i] += scratch.gates[t * gates_size() + i];
    if (float* to = a.parameter_gradients[2])
      product(rows_, static_features_, sequences_, {sums, sequences_}, {a.inputs[2], static_features_}, 0,
              to);
    if (float* to = a.input_gradients[2])
      product(sequences_, static_features_, rows_, {sums, sequences_, true},
              {a.parameters[2], static_features_}, 0, to);
  }

  const Recurrent layer_;
  bool lstm_, exposed_;
  size_t inputs_;
  int64_t steps_, sequences_, outputs_, rows_, features_, static_features_;
  int hidden_weight_;                   // its number among the parameters
  std::vector<float> carried_, begun_;  // states that this batch left, and that the one before left it
};

}  // namespace
}  // namespace native

KernelOffer make_native_recurrent(const Task& task) {
  const auto* layer = dynamic_cast<const Recurrent*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for LSTM and RNN"};
  if (!task.all_f32()) return {nullptr, "tensors of other types than f32"};
  if (layer->has_static(task.inputs.size()) && task.inputs[2].rank() > 2)
    return {nullptr, "a static input of more than two axes"};
  return {std::make_unique<native::RecurrentKernel>(task), ""};
}

}  // namespace cortado
