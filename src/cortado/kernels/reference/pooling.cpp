#include "cortado/layers/pooling.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "cortado/kernels/carry.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"

namespace cortado {
namespace {

// What all pooling methods share: the windows of a task.
class PoolingGeometry {
 public:
  explicit PoolingGeometry(const Task& task)
      : shape(task.inputs[0]),
        output_shape(task.outputs[0]),
        input(tensor_place(task.input_boxes[0])),
        output(tensor_place(task.output_boxes[0])),
        window_(dynamic_cast<const Pooling&>(task.layer()).options().resolve(task.inputs[0])) {}

  // The part of the image that the window of output element `at` reads.
  Box reads(const Index& at) const {
    Box box = input.box();
    box[0] = {at[0], at[0] + 1};
    box[1] = {at[1], at[1] + 1};
    for (size_t i = 0; i < window_.size(); ++i) {
      int64_t first = window_[i].first(at[i + 2]);
      box[i + 2] = {std::max<int64_t>(first, 0), std::min(first + window_[i].kernel, shape[i + 2])};
    }
    return box;
  }

  // Elements of the window that lie in the padded image: the divisor of an average.
  int64_t padded_size(const Index& at) const {
    int64_t size = 1;
    for (size_t i = 0; i < window_.size(); ++i) {
      int64_t first = window_[i].first(at[i + 2]);
      size *= std::min(first + window_[i].kernel, shape[i + 2] + window_[i].pad) - first;
    }
    return size;
  }

  // Offset of element `number` (spoken order) of the image that `at` belongs to.
  int64_t offset_in_image(const Index& at, int64_t number) const {
    Index index = at;
    for (int axis = shape.rank() - 1; axis >= 2; --axis) {
      index[axis] = number % shape[axis];
      number /= shape[axis];
    }
    return input(index);
  }

  Shape shape, output_shape;  // global
  Place input, output;

 private:
  Window window_;
};

template <typename T>
class AveragePoolingReference : public KernelOf<T> {
 public:
  explicit AveragePoolingReference(const Task& task) : geometry_(task) {}
  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(geometry_.output.box(), [&](const Index& at) {
      double sum = 0;
      for_each_index(geometry_.reads(at),
                     [&](const Index& pixel) { sum += a.inputs[0][geometry_.input(pixel)]; });
      a.outputs[0][geometry_.output(at)] = sum / geometry_.padded_size(at);
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(geometry_.input.size());
    for_each_index(geometry_.output.box(), [&](const Index& at) {
      double share =
          a.output_gradients[0][geometry_.output(at)] / static_cast<double>(geometry_.padded_size(at));
      for_each_index(geometry_.reads(at), [&](const Index& pixel) { sums[geometry_.input(pixel)] += share; });
    });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  PoolingGeometry geometry_;
};

// Max pooling and, in training, stochastic pooling: each output is one element of its window, whose number
// in the image is saved.
template <typename T>
class SelectingPoolingReference : public KernelOf<T> {
 public:
  SelectingPoolingReference(const Task& task, PoolingOptions::Method method)
      : geometry_(task),
        random_(method == PoolingOptions::Method::stochastic),
        mask_(task.outputs.size() == 2) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  Bytes saved_bytes() const override {
    return {geometry_.output.size() * static_cast<int64_t>(sizeof(int64_t))};
  }

  void forward(const ArgumentsOf<T>& a) override {
    auto* selected = reinterpret_cast<int64_t*>(a.saved);
    for_each_index(geometry_.output.box(), [&](const Index& at) {
      const std::optional<Index> pixel = random_ ? drawn(a, at) : maximum(a.inputs[0], at);
      const int64_t offset = geometry_.output(at);
      const int64_t number = pixel ? spoken_number(geometry_.shape, *pixel, 2) : outside;
      T value = pixel ? a.inputs[0][geometry_.input(*pixel)] : std::numeric_limits<float>::lowest();
      if (pixel) {
        for_each_index(geometry_.reads(at), [&](const Index& other) {
          value = carry(value, a.inputs[0][geometry_.input(other)]);
        });
      }
      a.outputs[0][offset] = value;
      if (mask_) a.outputs[1][offset] = number;
      if (selected) selected[offset] = number;
    });
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    const auto* selected = reinterpret_cast<const int64_t*>(a.saved);
    std::vector<double> sums(geometry_.input.size());
    for_each_index(geometry_.output.box(), [&](const Index& at) {
      int64_t offset = geometry_.output(at);
      if (selected[offset] == outside) return;
      sums[geometry_.offset_in_image(at, selected[offset])] += a.output_gradients[0][offset];
    });
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

 private:
  static constexpr int64_t outside = -1;  // the number that a window outside the image selects

  // First maximum in spoken order, none in a window outside the image; a NaN counts as above all numbers, so
  // that it is not hidden.
  std::optional<Index> maximum(const T* input, const Index& at) const {
    std::optional<Index> best;
    T largest = 0;
    for_each_index(geometry_.reads(at), [&](const Index& pixel) {
      T x = input[geometry_.input(pixel)];
      bool larger = x > largest || (std::isnan(x) && !std::isnan(largest));
      if (best && !larger) return;
      largest = x, best = pixel;
    });
    return best;
  }

  // The first element at which the running sum reaches a uniform share of the window's sum.
  Index drawn(const ArgumentsOf<T>& a, const Index& at) const {
    double total = 0, running = 0;
    Box reads = geometry_.reads(at);
    for_each_index(reads, [&](const Index& pixel) { total += a.inputs[0][geometry_.input(pixel)]; });
    double threshold = total * a.random.uniform(spoken_number(geometry_.output_shape, at));
    Index chosen{};
    bool found = false;
    for_each_index(reads, [&](const Index& pixel) {
      running += a.inputs[0][geometry_.input(pixel)];
      if (found || running < threshold) return;
      found = true, chosen = pixel;
    });
    return chosen;
  }

  PoolingGeometry geometry_;
  bool random_, mask_;
};

// Stochastic pooling in testing: the expectation of a draw.
template <typename T>
class ExpectedPoolingReference : public KernelOf<T> {
 public:
  explicit ExpectedPoolingReference(const Task& task) : geometry_(task) {}
  std::string name() const override { return "reference"; }

  void forward(const ArgumentsOf<T>& a) override {
    for_each_index(geometry_.output.box(), [&](const Index& at) {
      double sum = 0, squares = 0;
      for_each_index(geometry_.reads(at), [&](const Index& pixel) {
        double x = a.inputs[0][geometry_.input(pixel)];
        sum += x;
        squares += x * x;
      });
      a.outputs[0][geometry_.output(at)] = carry(sum > 0 ? squares / sum : 0, sum);
    });
  }
  void backward(const ArgumentsOf<T>&) override {}

 private:
  PoolingGeometry geometry_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_pooling_reference(const Task& task) {
  PoolingOptions::Method method = dynamic_cast<const Pooling&>(task.layer()).options().method;
  if (method == PoolingOptions::Method::average) return std::make_unique<AveragePoolingReference<T>>(task);
  if (method == PoolingOptions::Method::stochastic && task.phase == Phase::test) {
    return std::make_unique<ExpectedPoolingReference<T>>(task);
  }
  return std::make_unique<SelectingPoolingReference<T>>(task, method);
}
template std::unique_ptr<KernelOf<float>> make_pooling_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_pooling_reference<double>(const Task&);

}  // namespace cortado
