#include "cortado/layers/spp.h"

#include <algorithm>
#include <cmath>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

template <typename T>
class SppReference : public KernelOf<T> {
 public:
  explicit SppReference(const Task& task)
      : options_(dynamic_cast<const Spp&>(task.layer()).options()),
        shape_(task.inputs[0]),
        input_(tensor_place(task.input_boxes[0])),
        output_(tensor_place(task.output_boxes[0])) {
    const auto& layer = dynamic_cast<const Spp&>(task.layer());
    for (int64_t level = 0; level < options_.pyramid_height; ++level)
      levels_.push_back(layer.window(shape_, level));
  }
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = maximal(), .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    const T* x = a.inputs[0];
    for_each_window([&](const Box& read, int64_t size, int64_t to) {
      if (maximal()) {
        T y = x[input_(maximum(x, read))];
        for_each_index(read, [&](const Index& at) { y = carry(y, x[input_(at)]); });
        a.outputs[0][to] = y;
      } else {
        double sum = 0;
        for_each_index(read, [&](const Index& at) { sum += x[input_(at)]; });
        a.outputs[0][to] = sum / static_cast<double>(size);
      }
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(input_.size());
    for_each_window([&](const Box& read, int64_t size, int64_t from) {
      const double dy = a.output_gradients[0][from];
      if (maximal()) {
        sums[input_(maximum(a.inputs[0], read))] += dy;
      } else {
        for_each_index(read, [&](const Index& at) { sums[input_(at)] += dy / static_cast<double>(size); });
      }
    });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  bool maximal() const { return options_.method == SppOptions::Method::max; }

  // The first maximum in spoken order.
  Index maximum(const T* x, const Box& read) const {
    Index best{};
    for (int axis = 0; axis < read.rank(); ++axis) best[axis] = read[axis].begin;
    for_each_index(read, [&](const Index& at) {
      if (x[input_(at)] > x[input_(best)]) best = at;
    });
    return best;
  }

  // work(what it reads, its size with padding, offset in the output) for every window, in spoken order.
  template <typename Work>
  void for_each_window(Work&& work) const {
    const Range samples = output_.box()[0];
    for (int64_t n = samples.begin; n < samples.end; ++n) {
      Index to{n, 0};
      for (size_t level = 0; level < levels_.size(); ++level) {
        Box windows = Box::whole(shape_);
        for (int axis = 2; axis < shape_.rank(); ++axis) windows[axis] = {0, int64_t{1} << level};
        windows[0] = {n, n + 1};
        for_each_index(windows, [&](const Index& window) {
          int64_t size = 1;
          Box read = windows;
          read[1] = {window[1], window[1] + 1};
          for (int axis = 2; axis < shape_.rank(); ++axis) {
            const WindowAxis& along = levels_[level][axis - 2];
            read[axis] = window_reads({window[axis], window[axis] + 1}, along, shape_[axis]);
            size *= along.kernel;
          }
          work(read, size, output_(to));
          ++to[1];
        });
      }
    }
  }

  SppOptions options_;
  Shape shape_;  // of the whole input
  Place input_, output_;
  std::vector<Window> levels_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_spp_reference(const Task& task) {
  return std::make_unique<SppReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_spp_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_spp_reference<double>(const Task&);

}  // namespace cortado
