#include "cortado/layers/pooling.h"

#include <cmath>
#include <limits>

#include "cortado/kernels/gpu/gpu.h"
#include "cortado/kernels/gpu/offer.h"
#include "cortado/kernels/gpu/random_bits.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado {
namespace gpu {
namespace {

// One spatial axis; positions and windows have global numbers.
struct PoolingAxis {
  int64_t kernel = 1, stride = 1, pad = 0, image = 1;
  Divisor by_stride;

  CORTADO_EVERYWHERE int64_t begin(int64_t window) const {
    const int64_t first = window * stride - pad;
    return first > 0 ? first : 0;
  }
  CORTADO_EVERYWHERE int64_t end(int64_t window) const {
    const int64_t last = window * stride - pad + kernel;
    return last < image ? last : image;
  }
  // Positions of a window in the padded image: what an average divides by.
  CORTADO_EVERYWHERE int64_t padded_size(int64_t window) const {
    const int64_t rest = image + pad - (window * stride - pad);
    return kernel < rest ? kernel : rest;
  }
  // The windows of `held` that cover a position.
  CORTADO_EVERYWHERE int64_t first_covering(int64_t position, const PartAxis& held) const {
    const int64_t before = position + pad - kernel + stride;
    const int64_t first = before > 0 ? by_stride.quotient(before) : 0;
    return first > held.begin ? first : held.begin;
  }
  CORTADO_EVERYWHERE int64_t end_covering(int64_t position, const PartAxis& held) const {
    const int64_t end = by_stride.quotient(position + pad) + 1;
    return end < held.end() ? end : held.end();
  }
};

struct PoolingGeometry {
  Part input, output;
  Points input_point, output_point;
  PoolingAxis d, h, w;
  int64_t channels, extent[3];  // of the whole output
  int64_t size = 1;             // of a window

  // The number of an element of the whole output, in spoken order.
  CORTADO_EVERYWHERE int64_t output_number(const Point& at) const {
    return (((at.n * channels + at.c) * extent[0] + at.d) * extent[1] + at.h) * extent[2] + at.w;
  }

  // Calls visit(element of the input, number in the image) for each position of the image in a window.
  template <typename Visit>
  CORTADO_EVERYWHERE void positions(const Point& window, Visit&& visit) const {
    Point at = window;
    for (at.d = d.begin(window.d); at.d < d.end(window.d); ++at.d)
      for (at.h = h.begin(window.h); at.h < h.end(window.h); ++at.h)
        for (at.w = w.begin(window.w); at.w < w.end(window.w); ++at.w)
          visit(input.offset(at), (at.d * h.image + at.h) * w.image + at.w);
  }
  // Calls visit(element of the output, divisor of its average) for each window that covers a position.
  template <typename Visit>
  CORTADO_EVERYWHERE void windows(const Point& position, Visit&& visit) const {
    Point at = position;
    const int64_t first_h = h.first_covering(position.h, output.h),
                  end_h = h.end_covering(position.h, output.h);
    const int64_t first_w = w.first_covering(position.w, output.w),
                  end_w = w.end_covering(position.w, output.w);
    for (at.d = d.first_covering(position.d, output.d); at.d < d.end_covering(position.d, output.d); ++at.d)
      for (at.h = first_h; at.h < end_h; ++at.h)
        for (at.w = first_w; at.w < end_w; ++at.w) visit(output.offset(at), padded_size(at));
  }
  CORTADO_EVERYWHERE int64_t padded_size(const Point& window) const {
    return d.padded_size(window.d) * h.padded_size(window.h) * w.padded_size(window.w);
  }
};

constexpr int32_t outside = -1;  // the number that a window outside the image selects

// The first maximum in spoken order; a NaN counts as above all numbers. What is not finite is carried on.
template <typename E>
struct MaximumElement {
  PoolingGeometry geometry;
  const E* x;
  E* y;
  int32_t* selected;  // null: there is no backward pass
  float* indices;     // null: they are no output
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float largest = -std::numeric_limits<float>::max(), zero = 0;
    int64_t number = outside;
    geometry.positions(geometry.output_point(i), [&](int64_t element, int64_t position) {
      const float value = value_of(x[element]);
      zero += value * 0;
      const bool larger = value > largest || (value != value && largest == largest);
      if (number != outside && !larger) return;
      largest = value;
      number = position;
    });
    y[i] = rounded<E>(largest + zero);
    if (selected) selected[i] = static_cast<int32_t>(number);
    if (indices) indices[i] = static_cast<float>(number);
  }
};

// The first element at which the running sum reaches a uniform share of the window's sum.
template <typename E>
struct DrawnElement {
  PoolingGeometry geometry;
  RandomStream random;
  const E* x;
  E* y;
  int32_t* selected;  // null: there is no backward pass
  float* indices;     // null: they are no output
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point window = geometry.output_point(i);
    double total = 0, running = 0;
    geometry.positions(window, [&](int64_t element, int64_t) { total += value_of(x[element]); });
    const double share = random_bits(random, geometry.output_number(window)) * 0x1p-32;
    float value = 0, zero = 0;
    int64_t number = outside;
    geometry.positions(window, [&](int64_t element, int64_t position) {
      running += value_of(x[element]);
      zero += value_of(x[element]) * 0;
      if (number != outside || running < total * share) return;
      value = value_of(x[element]);
      number = position;
    });
    y[i] = rounded<E>(value + zero);
    if (selected) selected[i] = static_cast<int32_t>(number);
    if (indices) indices[i] = static_cast<float>(number);
  }
};

// The expectation of a draw.
template <typename E>
struct ExpectedElement {
  PoolingGeometry geometry;
  const E* x;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double sum = 0, squares = 0;
    geometry.positions(geometry.output_point(i), [&](int64_t element, int64_t) {
      const double value = value_of(x[element]);
      sum += value;
      squares += value * value;
    });
    y[i] = rounded<E>(static_cast<float>((sum > 0 ? squares / sum : 0) + sum * 0));
  }
};

template <typename E>
struct SelectedGradient {
  PoolingGeometry geometry;
  const E* dy;
  const int32_t* selected;
  E* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point at = geometry.input_point(i);
    const int64_t number = (at.d * geometry.h.image + at.h) * geometry.w.image + at.w;
    double sum = 0;
    geometry.windows(at, [&](int64_t window, int64_t) {
      sum += selected[window] == number ? value_of(dy[window]) : 0.0F;
    });
    dx[i] = rounded<E>(static_cast<float>(sum));
  }
};

template <typename E>
struct AverageElement {
  PoolingGeometry geometry;
  const E* x;
  E* y;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const Point window = geometry.output_point(i);
    double sum = 0;
    geometry.positions(window, [&](int64_t element, int64_t) { sum += value_of(x[element]); });
    y[i] = rounded<E>(static_cast<float>(sum / static_cast<double>(geometry.padded_size(window))));
  }
};

// Windows that lie within the padded image are added up first, and divided once.
template <typename E>
struct AverageGradient {
  PoolingGeometry geometry;
  const E* dy;
  E* dx;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    double of_whole = 0, sum = 0;
    geometry.windows(geometry.input_point(i), [&](int64_t window, int64_t size) {
      if (size == geometry.size)
        of_whole += value_of(dy[window]);
      else
        sum += static_cast<double>(value_of(dy[window])) / static_cast<double>(size);
    });
    dx[i] = rounded<E>(static_cast<float>(sum + of_whole / static_cast<double>(geometry.size)));
  }
};

class PoolingKernel : public Kernel {
 public:
  enum class Method { maximum, average, drawn, expected };
  PoolingKernel(const Task& task, Method method)
      : method_(method), backward_(task.has_backward()), type_(task.input_type(0)) {
    const Window window = dynamic_cast<const Pooling&>(task.layer()).options().resolve(task.inputs[0]);
    geometry_.input = part_of(task.input_boxes[0]);
    geometry_.output = part_of(task.output_boxes[0]);
    geometry_.input_point = Points(geometry_.input);
    geometry_.output_point = Points(geometry_.output);
    geometry_.channels = task.outputs[0][1];
    for (int64_t& extent : geometry_.extent) extent = 1;
    PoolingAxis* axes[] = {&geometry_.d, &geometry_.h, &geometry_.w};
    for (size_t i = 0; i < window.size(); ++i) {
      const int axis = static_cast<int>(i) + 2;
      *axes[i + 3 - window.size()] = {window[i].kernel, window[i].stride, window[i].pad, task.inputs[0][axis],
                                      Divisor(window[i].stride)};
      geometry_.extent[i + 3 - window.size()] = task.outputs[0][axis];
      geometry_.size *= window[i].kernel;
    }
  }
  std::string name() const override { return "gpu pooling"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }
  Bytes saved_bytes() const override {
    return {selects() && backward_ ? geometry_.output.elements() * int64_t{sizeof(int32_t)} : 0};
  }
  bool saves_by_samples() const override { return true; }

  void forward(const Arguments& a) override {
    with_tensor_type(type_, [&]<typename E>() { forward_of<E>(a); });
  }
  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    with_tensor_type(type_, [&]<typename E>() { backward_of<E>(a); });
  }

 private:
  template <typename E>
  void forward_of(const Arguments& a) const {
    auto* selected = backward_ ? reinterpret_cast<int32_t*>(a.saved) : nullptr;
    float* indices = a.outputs.size() > 1 ? a.outputs[1] : nullptr;
    const E* x = elements<E>(a.inputs[0]);
    E* y = elements<E>(a.outputs[0]);
    const int64_t count = geometry_.output.elements();
    switch (method_) {
      case Method::maximum:
        return for_each(a.stream, count, MaximumElement<E>{geometry_, x, y, selected, indices});
      case Method::drawn:
        return for_each(a.stream, count, DrawnElement<E>{geometry_, a.random, x, y, selected, indices});
      case Method::average:
        return for_each(a.stream, count, AverageElement<E>{geometry_, x, y});
      case Method::expected:
        return for_each(a.stream, count, ExpectedElement<E>{geometry_, x, y});
    }
  }
  template <typename E>
  void backward_of(const Arguments& a) const {
    const E* dy = elements<E>(a.output_gradients[0]);
    E* dx = elements<E>(a.input_gradients[0]);
    const int64_t count = geometry_.input.elements();
    if (selects())
      for_each(a.stream, count,
               SelectedGradient<E>{geometry_, dy, reinterpret_cast<const int32_t*>(a.saved), dx});
    else if (method_ == Method::average)
      for_each(a.stream, count, AverageGradient<E>{geometry_, dy, dx});
  }
  bool selects() const { return method_ == Method::maximum || method_ == Method::drawn; }
  Method method_;
  bool backward_;
  ElementType type_;
  PoolingGeometry geometry_{};
};

}  // namespace
}  // namespace gpu

KernelOffer make_gpu_pooling(const Task& task) {
  const auto* layer = dynamic_cast<const Pooling*>(&task.layer());
  if (!layer) return {nullptr, "not a Pooling"};
  // Indices are numbers of f32.
  auto refusal = task.outputs.size() > 1 ? gpu::common_refusal(task) : gpu::one_type_refusal(task);
  if (!refusal.empty()) return {nullptr, std::move(refusal)};
  if (task.inputs[0].size() / task.inputs[0][0] / task.inputs[0][1] > std::numeric_limits<int32_t>::max())
    return {nullptr, "images of 2^31 positions or more"};
  using Method = gpu::PoolingKernel::Method;
  Method method = Method::maximum;
  if (layer->options().method == PoolingOptions::Method::average) method = Method::average;
  if (layer->options().method == PoolingOptions::Method::stochastic)
    method = task.phase == Phase::test ? Method::expected : Method::drawn;
  return gpu::offered<gpu::PoolingKernel>(task, method);
}

}  // namespace cortado
