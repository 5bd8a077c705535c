#include "cortado/layers/resampling.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class ResamplingReference : public KernelOf<T> {
 public:
  explicit ResamplingReference(const Task& task)
      : axes_(dynamic_cast<const Resampling&>(task.layer()).axes(task.inputs)),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(output_.box(), [&](const Index& index) {
      double sum = 0;
      for_each_neighbour(index, [&](int64_t from, double weight) { sum += weight * a.inputs[0][from]; });
      a.outputs[0][output_(index)] = sum;
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(input_.size());
    for_each_index(output_.box(), [&](const Index& index) {
      const double dy = a.output_gradients[0][output_(index)];
      for_each_neighbour(index, [&](int64_t from, double weight) { sums[from] += weight * dy; });
    });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  // work(offset in the input, weight) for each element that an element of the output is made of.
  template <typename Work>
  void for_each_neighbour(const Index& index, Work&& work) const {
    Box read = input_.box();
    read[0] = {index[0], index[0] + 1};
    read[1] = {index[1], index[1] + 1};
    std::vector<Neighbours> neighbours;
    for (size_t i = 0; i < axes_.size(); ++i) {
      neighbours.push_back(axes_[i].neighbours(index[i + 2]));
      read[static_cast<int>(i) + 2] = {neighbours[i].first, neighbours[i].end()};
    }
    for_each_index(read, [&](const Index& at) {
      double weight = 1;
      for (size_t i = 0; i < axes_.size(); ++i)
        weight *= at[i + 2] > neighbours[i].first ? neighbours[i].weight : 1 - neighbours[i].weight;
      work(input_(at), weight);
    });
  }

  std::vector<AxisResampling> axes_;
  Place input_, output_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_resampling_reference(const Task& task) {
  return std::make_unique<ResamplingReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_resampling_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_resampling_reference<double>(const Task&);

}  // namespace cortado
