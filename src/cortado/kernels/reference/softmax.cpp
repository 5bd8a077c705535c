#include "cortado/layers/softmax.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class SoftmaxReference : public KernelOf<T> {
 public:
  explicit SoftmaxReference(const Task& task)
      : input_(task.local_input(0)),
        output_(task.local_output(0)),
        axis_(input_.canonical_axis(dynamic_cast<const Softmax&>(task.layer()).options().axis)),
        view_(input_, axis_),
        part_{task.output_boxes[0][axis_].begin - task.input_boxes[0][axis_].begin,
              task.output_boxes[0][axis_].end - task.input_boxes[0][axis_].begin} {}
  std::string name() const override { return "reference"; }
  // A part of a line is not enough to know the line: then it is computed again.
  BackwardReads backward_reads() const override { return {.inputs = is_part(), .outputs = !is_part()}; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    for_each_line([&](auto index, auto part_index) {
      std::vector<double> line = softmax(x, index);
      for (int64_t c = part_.begin; c < part_.end; ++c) y[part_index(c)] = static_cast<T>(line[c]);
    });
  }

  // dx = y (dy - sum(y dy)), dy being zero outside the part
  void backward(const ArgumentsOf<T>& arguments) override {
    if (!arguments.input_gradients[0]) return;
    Spoken<const T> x(input_, arguments.inputs[0]), y(output_, arguments.outputs[0]);
    Spoken<const T> dy(output_, arguments.output_gradients[0]);
    Spoken<T> dx(input_, arguments.input_gradients[0]);
    for_each_line([&](auto index, auto part_index) {
      std::vector<double> line(view_.extent);
      if (is_part()) {
        line = softmax(x, index);
      } else {
        for (int64_t c = 0; c < view_.extent; ++c) line[c] = y[index(c)];
      }
      double sum = 0;
      for (int64_t c = part_.begin; c < part_.end; ++c) sum += line[c] * dy[part_index(c)];
      for (int64_t c = 0; c < view_.extent; ++c) {
        bool inside = c >= part_.begin && c < part_.end;
        dx[index(c)] = static_cast<T>(line[c] * ((inside ? dy[part_index(c)] : 0) - sum));
      }
    });
  }

 private:
  bool is_part() const { return part_.size() < view_.extent; }

  template <typename Place>
  std::vector<double> softmax(const Spoken<const T>& x, Place&& index) const {
    T maximum = x[index(0)];
    for (int64_t c = 1; c < view_.extent; ++c) maximum = std::max(maximum, x[index(c)]);
    std::vector<double> line(view_.extent);
    double sum = 0;
    for (int64_t c = 0; c < view_.extent; ++c) {
      const double score = x[index(c)];
      sum += line[c] = carry(std::exp(score - maximum), score);
    }
    for (double& value : line) value /= sum;
    return line;
  }

  // work(index, part_index) for every line along the axis: the spoken index, in the input and in the output,
  // of the element that is number c of the input's line.
  template <typename Work>
  void for_each_line(Work&& work) const {
    for (int64_t i = 0; i < view_.before && view_.extent > 0; ++i) {
      for (int64_t j = 0; j < view_.after; ++j) {
        work([&](int64_t c) { return (i * view_.extent + c) * view_.after + j; },
             [&](int64_t c) { return (i * part_.size() + c - part_.begin) * view_.after + j; });
      }
    }
  }

  Shape input_, output_;
  int axis_;
  AxisView view_;  // of the input
  Range part_;     // of the input's lines that is computed
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_softmax_reference(const Task& task) {
  return std::make_unique<SoftmaxReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_softmax_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_softmax_reference<double>(const Task&);

}  // namespace cortado
