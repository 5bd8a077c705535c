#include "cortado/layers/inner_product.h"

#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class InnerProductReference : public KernelOf<T> {
 public:
  explicit InnerProductReference(const Task& task)
      : options_(dynamic_cast<const InnerProduct&>(task.layer()).options()),
        axis_(task.inputs[0].canonical_axis(options_.axis)),
        outputs_(task.output_boxes[0][axis_].size()) {
    Place input = tensor_place(task.input_boxes[0]), output = tensor_place(task.output_boxes[0]);
    output_step_ = output.stride(axis_);
    Box rows = output.box();  // the leading axes
    rows[axis_] = {output.box()[axis_].begin, output.box()[axis_].begin + 1};
    for_each_index(rows, [&](const Index& index) {
      Index row = index;
      for (int i = axis_; i < input.box().rank(); ++i) row[i] = input.box()[i].begin;
      row_inputs_.push_back(input(row));
      row_outputs_.push_back(output(index));
    });
    Box summed = input.box();
    for (int i = 0; i < axis_; ++i) summed[i] = {summed[i].begin, summed[i].begin + 1};
    for_each_index(summed, [&](const Index& index) { summed_.push_back(input(index)); });
  }

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for (size_t row = 0; row < row_inputs_.size(); ++row) {
      const T* x = a.inputs[0] + row_inputs_[row];
      for (int64_t o = 0; o < outputs_; ++o) {
        double sum = options_.bias_term ? a.parameters[1][o] : 0;
        for (size_t k = 0; k < summed_.size(); ++k) {
          sum += static_cast<double>(a.parameters[0][weight(o, k)]) * x[summed_[k]];
        }
        a.outputs[0][row_outputs_[row] + o * output_step_] = sum;
      }
    }
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    for (size_t row = 0; row < row_inputs_.size(); ++row) {
      const T* dy = a.output_gradients[0] + row_outputs_[row];
      for (size_t k = 0; k < summed_.size(); ++k) {
        double sum = 0;
        for (int64_t o = 0; o < outputs_; ++o) {
          sum += static_cast<double>(a.parameters[0][weight(o, k)]) * dy[o * output_step_];
        }
        a.input_gradients[0][row_inputs_[row] + summed_[k]] = sum;
      }
    }
  }

  void backward_weights(const ArgumentsOf<T>& a) override {
    for (int64_t o = 0; o < outputs_; ++o) {
      if (T* gradient = a.parameter_gradients[0]) {
        for (size_t k = 0; k < summed_.size(); ++k) {
          gradient[weight(o, k)] =
              sum_over_rows(a, o, [&](size_t row) { return a.inputs[0][row_inputs_[row] + summed_[k]]; });
        }
      }
      if (options_.bias_term && a.parameter_gradients[1]) {
        a.parameter_gradients[1][o] = sum_over_rows(a, o, [](size_t) { return 1; });
      }
    }
  }

 private:
  int64_t weight(int64_t o, int64_t k) const {
    return options_.transpose ? k * outputs_ + o : o * static_cast<int64_t>(summed_.size()) + k;
  }
  template <typename Factor>
  double sum_over_rows(const ArgumentsOf<T>& a, int64_t o, Factor&& factor) const {
    double sum = 0;
    for (size_t row = 0; row < row_outputs_.size(); ++row) {
      sum += static_cast<double>(a.output_gradients[0][row_outputs_[row] + o * output_step_]) * factor(row);
    }
    return sum;
  }

  InnerProductOptions options_;
  int axis_;
  int64_t outputs_, output_step_ = 1;
  std::vector<int64_t> row_inputs_, row_outputs_;  // offsets of each row's first element
  std::vector<int64_t> summed_;                    // offsets within a row, spoken order
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_inner_product_reference(const Task& task) {
  return std::make_unique<InnerProductReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_inner_product_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_inner_product_reference<double>(const Task&);

}  // namespace cortado
