#include "cortado/layers/filter.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class FilterReference : public KernelOf<T> {
 public:
  explicit FilterReference(const Task& task) : samples_(task.inputs.back()[0]), passing_(task.outputs[0][0]) {
    for (size_t k = 0; k < task.outputs.size(); ++k) {
      inputs_.push_back(tensor_place(task.input_boxes[k]));
      outputs_.push_back(tensor_place(task.output_boxes[k]));
    }
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    const std::vector<int64_t> passing = passing_samples(a.inputs.back());
    for (size_t k = 0; k < outputs_.size(); ++k)
      for_each_pair(k, passing, [&](int64_t from, int64_t to) { a.outputs[k][to] = a.inputs[k][from]; });
  }

  void backward(const ArgumentsOf<T>& a) override {
    const std::vector<int64_t> passing = passing_samples(a.inputs.back());
    if (T* selector = a.input_gradients.back()) std::fill_n(selector, samples_, T{0});
    for (size_t k = 0; k < outputs_.size(); ++k) {
      T* to = a.input_gradients[k];
      if (!to) continue;
      std::fill_n(to, inputs_[k].size(), T{0});
      const T* gradient = a.output_gradients[k];
      if (!gradient) continue;  // zero
      for_each_pair(k, passing, [&](int64_t at, int64_t from) { to[at] = gradient[from]; });
    }
  }

 private:
  std::vector<int64_t> passing_samples(const T* selector) const {
    std::vector<int64_t> passing;
    for (int64_t n = 0; n < samples_; ++n)
      if (selector[n] != 0) passing.push_back(n);
    if (std::ssize(passing) != passing_)
      throw UserError(fmt::format("{} of {} samples pass, not {} as filter_param.samples says",
                                  passing.size(), samples_, passing_));
    return passing;
  }

  // work(offset in input k, offset in output k) for every element of the output.
  template <typename Work>
  void for_each_pair(size_t k, const std::vector<int64_t>& passing, Work&& work) const {
    for_each_index(outputs_[k].box(), [&](const Index& index) {
      Index source = index;
      source[0] = passing[index[0]];
      work(inputs_[k](source), outputs_[k](index));
    });
  }

  int64_t samples_, passing_;
  std::vector<Place> inputs_, outputs_;  // of each tensor
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_filter_reference(const Task& task) {
  return std::make_unique<FilterReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_filter_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_filter_reference<double>(const Task&);

}  // namespace cortado
