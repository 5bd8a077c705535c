#include "cortado/layers/arg_max.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/layers/axes.h"

namespace cortado {
namespace {

using reference::Spoken;

template <typename T>
class ArgMaxReference : public KernelOf<T> {
 public:
  explicit ArgMaxReference(const Task& task)
      : options_(dynamic_cast<const ArgMax&>(task.layer()).options()),
        input_(task.local_input(0)),
        output_(task.local_output(0)),
        view_(input_, options_.axis.value_or(0)) {
    if (options_.axis) return;
    view_.before = input_[0];
    view_.extent = input_.count(1);
    view_.after = 1;
  }
  std::string name() const override { return "reference"; }

  void forward(const ArgumentsOf<T>& arguments) override {
    Spoken<const T> x(input_, arguments.inputs[0]);
    Spoken<T> y(output_, arguments.outputs[0]);
    int64_t top_k = options_.top_k;
    bool both = options_.out_max_val && !options_.axis;
    std::vector<std::pair<T, int64_t>> line(view_.extent);
    for (int64_t k = 0; k < view_.before * view_.after; ++k) {
      int64_t i = k / view_.after, j = k % view_.after;
      T all = 0;
      for (int64_t c = 0; c < view_.extent; ++c) {
        line[c] = {x[(i * view_.extent + c) * view_.after + j], c};
        all = carry(all, line[c].first);
      }
      std::partial_sort(line.begin(), line.begin() + top_k, line.end(), std::greater<>());
      for (int64_t rank = 0; rank < top_k; ++rank) {
        auto [value, index] = line[rank];
        int64_t to = both ? 2 * i * top_k + rank : (i * top_k + rank) * view_.after + j;
        y[to] = all + (options_.out_max_val && !both ? value : static_cast<T>(index));
        if (both) y[to + top_k] = all + value;
      }
    }
  }

  void backward(const ArgumentsOf<T>&) override {}

 private:
  ArgMaxOptions options_;
  Shape input_, output_;
  AxisView view_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_arg_max_reference(const Task& task) {
  return std::make_unique<ArgMaxReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_arg_max_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_arg_max_reference<double>(const Task&);

}  // namespace cortado
