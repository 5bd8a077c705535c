#include "cortado/layers/recurrent.h"

#include <array>
#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

double gate_sigmoid(double x) { return carry(1 / (1 + std::exp(-x)), x); }
double tanh_of(double x) { return carry(std::tanh(x), x); }

// Vectors of an activation, one for each place along its first axes: where each begins, and where the
// elements lie within one, in spoken order.
struct Vectors {
  std::vector<int64_t> begins, elements;

  Vectors(const Box& box, int axes) {
    const Place place = tensor_place(box);
    Box first = box, rest = box;
    for (int axis = 0; axis < box.rank(); ++axis) {
      Range& one = axis < axes ? rest[axis] : first[axis];
      one.end = one.begin + 1;
    }
    for_each_index(first, [&](const Index& index) { begins.push_back(place(index)); });
    for_each_index(rest, [&](const Index& index) { elements.push_back(place(index)); });
  }
  int64_t size() const { return static_cast<int64_t>(elements.size()); }
  int64_t at(int64_t vector, int64_t element) const { return begins[vector] + elements[element]; }
};

// What a pass keeps of each step t and sequence n, `step` = t * sequences + n. Of the states, step 0 is what
// was there before the first one.
struct Kept {
  double* gates;  // after their functions
  double* hidden;
  double* cell;
};

template <typename T>
class RecurrentReference : public KernelOf<T> {
 public:
  explicit RecurrentReference(const Task& task)
      : layer_(dynamic_cast<const Recurrent&>(task.layer())),
        steps_(task.outputs[0][0]),
        sequences_(task.local_output(0)[1]),
        outputs_(task.outputs[0][2]),
        rows_(layer_.gates() * outputs_),
        inputs_(task.inputs.size()),
        static_(layer_.has_static(inputs_)),
        x_(task.input_boxes[0], 2),
        y_(task.output_boxes[0], 2),
        s_(static_ ? task.input_boxes[2] : task.input_boxes[0], 1),
        state_(Box::whole({1, sequences_, outputs_}), 2),
        carried_(layer_.states() * states_size()) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = true}; }
  Bytes saved_bytes() const override {
    const int64_t states = (steps_ + 1) * states_size() * layer_.states();
    return {(steps_ * sequences_ * rows_ + states) * int64_t{sizeof(double)}};
  }

  void forward(const ArgumentsOf<T>& a) override {
    const Kept kept = kept_of(a);
    if (!a.again) begun_ = carried_;
    for (int state = 0; state < layer_.states(); ++state) {
      double* first = state == 0 ? kept.hidden : kept.cell;
      std::copy_n(begun_.begin() + state * states_size(), states_size(), first);
      if (!layer_.options().expose_hidden) continue;
      const T* input = a.inputs[layer_.state_input(inputs_, state)];
      for_each_state([&](int64_t i, int64_t at) { first[i] = input[at]; });
    }
    for (int64_t step = 0; step < steps_ * sequences_; ++step) forward_step(a, kept, step);
    for (int state = 0; state < layer_.states(); ++state) {
      const double* last = (state == 0 ? kept.hidden : kept.cell) + steps_ * states_size();
      std::copy_n(last, states_size(), carried_.begin() + state * states_size());
      if (!layer_.options().expose_hidden) continue;
      for_each_state([&](int64_t i, int64_t at) { a.outputs[1 + state][at] = last[i]; });
    }
  }

  void backward(const ArgumentsOf<T>& a) override {
    const Kept kept = kept_of(a);
    sums_.clear();
    for (size_t p = 0; p < a.parameters.size(); ++p) sums_.emplace_back(parameter_size(p));
    dx_.assign(x_.begins.size() * x_.size(), 0);
    ds_.assign(sequences_ * s_.size(), 0);
    // Gradients of the states after the step that is computed.
    std::array<std::vector<double>, 2> states;
    for (int state = 0; state < layer_.states(); ++state) {
      states[state].assign(states_size(), 0);
      const T* given = layer_.options().expose_hidden ? a.output_gradients[1 + state] : nullptr;
      if (given) for_each_state([&](int64_t i, int64_t at) { states[state][i] = given[at]; });
    }
    for (int64_t step = steps_ * sequences_ - 1; step >= 0; --step) backward_step(a, kept, states, step);
    write_gradients(a, states);
  }

 private:
  int64_t states_size() const { return sequences_ * outputs_; }
  int hidden_parameter() const { return static_ ? 3 : 2; }
  int64_t parameter_size(size_t p) const {
    const int hidden = hidden_parameter(), index = static_cast<int>(p);
    if (index == 0) return rows_ * x_.size();
    if (index == 1) return rows_;
    if (index < hidden) return rows_ * s_.size();
    if (index == hidden) return rows_ * outputs_;
    return index == hidden + 1 ? outputs_ * outputs_ : outputs_;
  }
  Kept kept_of(const ArgumentsOf<T>& a) const {
    auto* gates = reinterpret_cast<double*>(a.saved);
    double* hidden = gates + steps_ * sequences_ * rows_;
    return {gates, hidden, hidden + (steps_ + 1) * states_size()};
  }
  // visit(number in [n][d], offset in a tensor 1 x N x D).
  template <typename Visit>
  void for_each_state(Visit&& visit) const {
    for (int64_t n = 0; n < sequences_; ++n)
      for (int64_t d = 0; d < outputs_; ++d) visit(n * outputs_ + d, state_.at(n, d));
  }
  // What step `step` sees of a state of the one before it.
  static double seen(double cont, double state) { return cont == 0 ? 0 : cont * state; }

  void forward_step(const ArgumentsOf<T>& a, const Kept& kept, int64_t step) {
    const int64_t n = step % sequences_;
    const double cont = a.inputs[1][step];
    const double* before = kept.hidden + step * outputs_;
    const T *wx = a.parameters[0], *bias = a.parameters[1], *wh = a.parameters[hidden_parameter()];
    double* gates = kept.gates + step * rows_;
    for (int64_t row = 0; row < rows_; ++row) {
      double sum = bias[row];
      for (int64_t k = 0; k < x_.size(); ++k)
        sum += static_cast<double>(wx[row * x_.size() + k]) * a.inputs[0][x_.at(step, k)];
      for (int64_t k = 0; static_ && k < s_.size(); ++k)
        sum += static_cast<double>(a.parameters[2][row * s_.size() + k]) * a.inputs[2][s_.at(n, k)];
      for (int64_t k = 0; k < outputs_; ++k) sum += wh[row * outputs_ + k] * seen(cont, before[k]);
      gates[row] = layer_.is_lstm() && row < 3 * outputs_ ? gate_sigmoid(sum) : tanh_of(sum);
    }
    double* hidden = kept.hidden + (step + sequences_) * outputs_;
    if (!layer_.is_lstm()) return rnn_outputs(a, gates, hidden, step);
    double* cell = kept.cell + (step + sequences_) * outputs_;
    for (int64_t d = 0; d < outputs_; ++d) {
      const double i = gates[d], f = gates[outputs_ + d], o = gates[2 * outputs_ + d],
                   g = gates[3 * outputs_ + d];
      cell[d] = i * g + f * seen(cont, kept.cell[step * outputs_ + d]);
      hidden[d] = o * tanh_of(cell[d]);
      a.outputs[0][y_.at(step, d)] = hidden[d];
    }
  }

  void rnn_outputs(const ArgumentsOf<T>& a, const double* gates, double* hidden, int64_t step) const {
    std::copy_n(gates, outputs_, hidden);
    const T *weight = a.parameters[hidden_parameter() + 1], *bias = a.parameters[hidden_parameter() + 2];
    for (int64_t o = 0; o < outputs_; ++o) {
      double sum = bias[o];
      for (int64_t k = 0; k < outputs_; ++k) sum += weight[o * outputs_ + k] * hidden[k];
      a.outputs[0][y_.at(step, o)] = tanh_of(sum);
    }
  }

  // `states` hold the gradients of the states after the step, and then those of the states before it.
  void backward_step(const ArgumentsOf<T>& a, const Kept& kept, std::array<std::vector<double>, 2>& states,
                     int64_t step) {
    const int64_t n = step % sequences_;
    const double cont = a.inputs[1][step];
    double* dh = &states[0][n * outputs_];
    if (!layer_.is_lstm()) add_rnn_outputs(a, kept, dh, step);
    const std::vector<double> gradient = layer_.is_lstm()
                                             ? lstm_gates(a, kept, dh, &states[1][n * outputs_], step)
                                             : rnn_gates(kept, dh, step);
    const T* wh = a.parameters[hidden_parameter()];
    for (int64_t k = 0; k < outputs_; ++k) {
      double sum = 0;
      for (int64_t row = 0; row < rows_; ++row) sum += gradient[row] * wh[row * outputs_ + k];
      dh[k] = seen(cont, sum);
    }
    add_products(a, gradient, kept.hidden + step * outputs_, step);
  }

  // The gradients of the gates before their functions; of the cell, that before the step.
  std::vector<double> lstm_gates(const ArgumentsOf<T>& a, const Kept& kept, const double* dh, double* dc,
                                 int64_t step) const {
    std::vector<double> gradient(rows_);
    const double* gates = kept.gates + step * rows_;
    const double cont = a.inputs[1][step];
    for (int64_t d = 0; d < outputs_; ++d) {
      const double i = gates[d], f = gates[outputs_ + d], o = gates[2 * outputs_ + d],
                   g = gates[3 * outputs_ + d];
      const double cell = tanh_of(kept.cell[(step + sequences_) * outputs_ + d]);
      const double hidden = dh[d] + (a.output_gradients[0] ? a.output_gradients[0][y_.at(step, d)] : 0);
      const double of_cell = dc[d] + hidden * o * (1 - cell * cell);
      gradient[d] = of_cell * g * i * (1 - i);
      gradient[outputs_ + d] = of_cell * seen(cont, kept.cell[step * outputs_ + d]) * f * (1 - f);
      gradient[2 * outputs_ + d] = hidden * cell * o * (1 - o);
      gradient[3 * outputs_ + d] = of_cell * i * (1 - g * g);
      dc[d] = seen(cont, of_cell * f);
    }
    return gradient;
  }

  std::vector<double> rnn_gates(const Kept& kept, const double* dh, int64_t step) const {
    std::vector<double> gradient(rows_);
    const double* h = kept.gates + step * rows_;
    for (int64_t d = 0; d < outputs_; ++d) gradient[d] = dh[d] * (1 - h[d] * h[d]);
    return gradient;
  }

  // Adds the gradient of the hidden state by the outputs, and those of the outputs' parameters.
  void add_rnn_outputs(const ArgumentsOf<T>& a, const Kept& kept, double* dh, int64_t step) {
    if (!a.output_gradients[0]) return;
    const double* hidden = kept.hidden + (step + sequences_) * outputs_;
    const int weight = hidden_parameter() + 1;
    for (int64_t o = 0; o < outputs_; ++o) {
      const double y = a.outputs[0][y_.at(step, o)];
      const double gradient = a.output_gradients[0][y_.at(step, o)] * (1 - y * y);
      sums_[weight + 1][o] += gradient;
      for (int64_t k = 0; k < outputs_; ++k) {
        sums_[weight][o * outputs_ + k] += gradient * hidden[k];
        dh[k] += gradient * a.parameters[weight][o * outputs_ + k];
      }
    }
  }

  // Adds what the gates' sums give their factors.
  void add_products(const ArgumentsOf<T>& a, const std::vector<double>& gradient, const double* before,
                    int64_t step) {
    const int64_t n = step % sequences_;
    const double cont = a.inputs[1][step];
    for (int64_t row = 0; row < rows_; ++row) {
      sums_[1][row] += gradient[row];
      for (int64_t k = 0; k < x_.size(); ++k) {
        sums_[0][row * x_.size() + k] += gradient[row] * a.inputs[0][x_.at(step, k)];
        dx_[step * x_.size() + k] += gradient[row] * a.parameters[0][row * x_.size() + k];
      }
      for (int64_t k = 0; static_ && k < s_.size(); ++k) {
        sums_[2][row * s_.size() + k] += gradient[row] * a.inputs[2][s_.at(n, k)];
        ds_[n * s_.size() + k] += gradient[row] * a.parameters[2][row * s_.size() + k];
      }
      for (int64_t k = 0; k < outputs_; ++k)
        sums_[hidden_parameter()][row * outputs_ + k] += gradient[row] * seen(cont, before[k]);
    }
  }

  void write_gradients(const ArgumentsOf<T>& a, const std::array<std::vector<double>, 2>& states) const {
    for (size_t p = 0; p < sums_.size(); ++p)
      if (a.parameter_gradients[p]) std::copy(sums_[p].begin(), sums_[p].end(), a.parameter_gradients[p]);
    const auto write = [](T* to, const Vectors& vectors, const std::vector<double>& from) {
      if (!to) return;
      for (size_t v = 0; v < vectors.begins.size(); ++v)
        for (int64_t k = 0; k < vectors.size(); ++k) to[vectors.at(v, k)] = from[v * vectors.size() + k];
    };
    write(a.input_gradients[0], x_, dx_);
    if (static_) write(a.input_gradients[2], s_, ds_);
    for (int state = 0; layer_.options().expose_hidden && state < layer_.states(); ++state)
      write(a.input_gradients[layer_.state_input(inputs_, state)], state_, states[state]);
  }

  const Recurrent layer_;
  int64_t steps_, sequences_, outputs_, rows_;
  size_t inputs_;
  bool static_;
  Vectors x_, y_, s_, state_;
  std::vector<double> carried_, begun_;  // states that this batch left, and that the one before left it
  std::vector<std::vector<double>> sums_;
  std::vector<double> dx_, ds_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_recurrent_reference(const Task& task) {
  return std::make_unique<RecurrentReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_recurrent_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_recurrent_reference<double>(const Task&);

}  // namespace cortado
