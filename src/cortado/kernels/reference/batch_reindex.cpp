#include "cortado/layers/batch_reindex.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class BatchReindexReference : public KernelOf<T> {
 public:
  explicit BatchReindexReference(const Task& task)
      : samples_(task.inputs[0][0]),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_pair(a.inputs[1], [&](int64_t from, int64_t to) { a.outputs[0][to] = a.inputs[0][from]; });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(input_.size());
    for_each_pair(a.inputs[1], [&](int64_t to, int64_t from) { sums[to] += a.output_gradients[0][from]; });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  // work(offset in the input, offset in the output) for every element of the output.
  template <typename Work>
  void for_each_pair(const T* indices, Work&& work) const {
    for_each_index(output_.box(), [&](const Index& index) {
      Index source = index;
      source[0] = sample(indices[index[0] - output_.box()[0].begin]);
      work(input_(source), output_(index));
    });
  }

  int64_t sample(T index) const {
    if (index >= 0 && index < static_cast<T>(samples_)) return static_cast<int64_t>(index);
    throw UserError(
        fmt::format("index {} is outside [0, {}): there are {} samples", index, samples_, samples_));
  }

  int64_t samples_;  // of the whole input
  Place input_, output_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_batch_reindex_reference(const Task& task) {
  return std::make_unique<BatchReindexReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_batch_reindex_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_batch_reindex_reference<double>(const Task&);

}  // namespace cortado
