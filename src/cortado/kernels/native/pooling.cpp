#include "cortado/layers/pooling.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/carry.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/kernels/native/simd.h"

namespace cortado {

namespace native {

namespace {

// One spatial axis of a pooling task. Positions of the image and windows have global numbers; `held`
// positions and `windows` are this device's.
struct PoolingAxis {
  WindowAxis window;
  int64_t image = 1;
  Range held{0, 1};
  Range windows{0, 1};

  // Positions of window `o` in the image.
  Range positions(int64_t o) const {
    int64_t first = window.first(o);
    return {std::max<int64_t>(first, 0), std::min(first + window.kernel, image)};
  }
  // Positions of window `o` in the padded image: what an average divides by.
  int64_t padded_size(int64_t o) const {
    return std::min(window.kernel, image + window.pad - window.first(o));
  }
  // Windows of this device that cover position `i`.
  Range covering(int64_t i) const {
    int64_t begin = std::max<int64_t>(0, i + window.pad - window.kernel + window.stride) / window.stride;
    return {std::max(begin, windows.begin), std::min((i + window.pad) / window.stride + 1, windows.end)};
  }
};

// The positions that a window reads along an axis, or the windows that a position is read by.
struct PoolingLink {
  int64_t offset;    // in the tensor that is read
  int32_t tap;       // of the position, in the window
  float weight = 1;  // average: 1 / size of the window
};

// The links of each window, or of each position, of this device along one axis.
class AxisLinks {
 public:
  // `step`: elements from one position of the image to the next; `tap_step`: from one tap to the next.
  static AxisLinks of_windows(const PoolingAxis& axis, int64_t step, int32_t tap_step) {
    return {axis.windows, [&](int64_t o) { return axis.positions(o); },
            [&](int64_t o, int64_t i) { return link(axis, (i - axis.held.begin) * step, i, o, tap_step); }};
  }
  // `step`: elements from one window to the next.
  static AxisLinks of_positions(const PoolingAxis& axis, int64_t step, int32_t tap_step) {
    return {
        axis.held, [&](int64_t i) { return axis.covering(i); },
        [&](int64_t i, int64_t o) { return link(axis, (o - axis.windows.begin) * step, i, o, tap_step); }};
  }

  int64_t count() const { return static_cast<int64_t>(ends_.size()) - 1; }
  std::span<const PoolingLink> operator[](int64_t i) const {
    return std::span(links_).subspan(ends_[i], ends_[i + 1] - ends_[i]);
  }

 private:
  // link_to(i, j) for each i of `of` and each j of linked(i).
  template <typename Linked, typename LinkTo>
  AxisLinks(const Range& of, Linked&& linked, LinkTo&& link_to) {
    for (int64_t i = of.begin; i < of.end; ++i) {
      const Range others = linked(i);
      for (int64_t j = others.begin; j < others.end; ++j) links_.push_back(link_to(i, j));
      ends_.push_back(links_.size());
    }
  }
  static PoolingLink link(const PoolingAxis& axis, int64_t offset, int64_t position, int64_t window,
                          int32_t tap_step) {
    const auto tap = static_cast<int32_t>(position - axis.window.first(window));
    return {offset, tap * tap_step, 1.0f / static_cast<float>(axis.padded_size(window))};
  }

  std::vector<PoolingLink> links_;
  std::vector<size_t> ends_{0};
};

// Both tensors are N x D x H x W x C; missing spatial axes have one position and one window.
struct PoolingGeometry {
  int64_t samples = 0, channels = 0;
  PoolingAxis depth, height, width;

  explicit PoolingGeometry(const Task& task, const Window& window)
      : samples(task.output_boxes[0][0].size()), channels(task.output_boxes[0][1].size()) {
    std::array<PoolingAxis*, 3> axes{&depth, &height, &width};
    const size_t missing = axes.size() - window.size();
    for (size_t i = 0; i < window.size(); ++i) {
      const int axis = static_cast<int>(i) + 2;
      *axes[missing + i] = {window[i], task.inputs[0][axis], task.input_boxes[0][axis],
                            task.output_boxes[0][axis]};
    }
  }
  int64_t taps() const { return depth.window.kernel * height.window.kernel * width.window.kernel; }
  int64_t input_size() const { return samples * sample_size(&PoolingAxis::held); }
  int64_t output_size() const { return samples * sample_size(&PoolingAxis::windows); }
  int64_t sample_size(Range PoolingAxis::*of) const {
    return (depth.*of).size() * (height.*of).size() * (width.*of).size() * channels;
  }
};

// Walks one tensor and says, for each of its points, what it reads of the other one.
class PoolingWalk {
 public:
  static PoolingWalk of_windows(const PoolingGeometry& g) {
    return {g, &PoolingAxis::held, AxisLinks::of_windows};
  }
  static PoolingWalk of_positions(const PoolingGeometry& g) {
    return {g, &PoolingAxis::windows, AxisLinks::of_positions};
  }

  // visit(to, from, lines, points) for each point of the tensor, rows of w in parallel: the point's channels
  // begin at element `to`, and it reads at from + line.offset + point.offset for each pair of the two lists.
  template <typename Visit>
  void run(Visit&& visit) const {
    parallel_ranges(samples_ * depth_.count() * height_.count(), [&](int64_t begin, int64_t end) {
      std::vector<PoolingLink> lines;
      for (int64_t row = begin; row < end; ++row) {
        join_lines(row, lines);
        const int64_t from = row / height_.count() / depth_.count() * sample_read_;
        for (int64_t w = 0; w < width_.count(); ++w)
          visit((row * width_.count() + w) * channels_, from, std::span<const PoolingLink>(lines), width_[w]);
      }
      finish_streaming();
    });
  }

 private:
  using Links = AxisLinks (*)(const PoolingAxis& axis, int64_t step, int32_t tap_step);

  PoolingWalk(const PoolingGeometry& g, Range PoolingAxis::*read, Links links)
      : samples_(g.samples),
        channels_(g.channels),
        sample_read_(g.sample_size(read)),
        depth_(links(g.depth, g.channels * (g.width.*read).size() * (g.height.*read).size(),
                     static_cast<int32_t>(g.width.window.kernel * g.height.window.kernel))),
        height_(links(g.height, g.channels * (g.width.*read).size(),
                      static_cast<int32_t>(g.width.window.kernel))),
        width_(links(g.width, g.channels, 1)) {}

  // The links along d and h of the points of a row.
  void join_lines(int64_t row, std::vector<PoolingLink>& lines) const {
    lines.clear();
    for (const PoolingLink& d : depth_[row / height_.count() % depth_.count()]) {
      for (const PoolingLink& h : height_[row % height_.count()])
        lines.push_back({d.offset + h.offset, d.tap + h.tap, d.weight * h.weight});
    }
  }

  int64_t samples_, channels_, sample_read_;
  AxisLinks depth_, height_, width_;
};

// Taps of the maxima, one per output: bytes where a window has at most 256, else ints.
template <typename V, typename Tap>
ints_of<V> load_taps(const Tap* taps) {
  if constexpr (std::is_same_v<V, float>) {
    return *taps;
  } else if constexpr (std::is_same_v<Tap, uint8_t>) {
    return widen<V>(taps);
  } else {
    ints_of<V> values;
    std::memcpy(&values, taps, sizeof(values));
    return values;
  }
}

template <typename V, typename Tap>
void store_taps(Tap* taps, ints_of<V> values) {
  if constexpr (std::is_same_v<V, float>) {
    *taps = static_cast<Tap>(values);
  } else if constexpr (std::is_same_v<Tap, uint8_t>) {
    narrow<V>(taps, values);
  } else {
    std::memcpy(taps, &values, sizeof(values));
  }
}

// y = the maximum of each window; backward, every position gathers the dy of the windows whose maximum it
// was. Saved: the tap of each maximum, when there is a backward pass.
template <typename E, typename Tap>
class MaxPoolingKernel : public Kernel {
 public:
  MaxPoolingKernel(const PoolingGeometry& geometry, bool backward)
      : g_(geometry),
        windows_(PoolingWalk::of_windows(geometry)),
        positions_(PoolingWalk::of_positions(geometry)),
        backward_(backward) {}

  std::string name() const override { return "native max-pooling"; }
  Bytes saved_bytes() const override { return {backward_ ? g_.output_size() * int64_t{sizeof(Tap)} : 0}; }
  bool saves_by_samples() const override { return true; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const bool streaming = wants_streaming(elements<E>(arguments.outputs[0]), g_.output_size(), g_.channels);
    if (backward_) {
      streaming ? run_forward<true, true>(arguments) : run_forward<true, false>(arguments);
    } else {
      streaming ? run_forward<false, true>(arguments) : run_forward<false, false>(arguments);
    }
  }
  void backward(const Arguments& arguments) override {
    if (!arguments.input_gradients[0]) return;
    const bool streaming =
        wants_streaming(elements<E>(arguments.input_gradients[0]), g_.input_size(), g_.channels);
    streaming ? run_backward<true>(arguments) : run_backward<false>(arguments);
  }

 private:
  template <bool keep_taps, bool streaming>
  void run_forward(const Arguments& arguments) const {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    Tap* taps = reinterpret_cast<Tap*>(arguments.saved);
    windows_.run([=, channels = g_.channels](int64_t to, int64_t from, auto lines, auto points) {
      by_lanes(0, channels, [&]<typename V>(int64_t c) {
        V best = splat<V>(-std::numeric_limits<float>::infinity()), all{};
        ints_of<V> where = ints_of<V>{} + (lines[0].tap + points[0].tap);
        for (const PoolingLink& line : lines) {
          for (const PoolingLink& point : points) {
            const V value = load<V>(x + from + line.offset + point.offset + c);
            const auto better = value > best;
            best = better ? value : best;
            if constexpr (keep_taps) where = better ? ints_of<V>{} + (line.tap + point.tap) : where;
            all = carry(all, value);
          }
        }
        store<streaming>(y + to + c, best + all);
        if constexpr (keep_taps) store_taps<V>(taps + to + c, where);
      });
    });
  }

  template <bool streaming>
  void run_backward(const Arguments& arguments) const {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    const Tap* taps = reinterpret_cast<const Tap*>(arguments.saved);
    positions_.run([=, channels = g_.channels](int64_t to, int64_t from, auto lines, auto points) {
      by_lanes(0, channels, [&]<typename V>(int64_t c) {
        V total{};
        for (const PoolingLink& line : lines) {
          for (const PoolingLink& point : points) {
            const int64_t at = from + line.offset + point.offset + c;
            const auto here = load_taps<V>(taps + at) == ints_of<V>{} + (line.tap + point.tap);
            total += here ? load<V>(dy + at) : V{};
          }
        }
        store<streaming>(dx + to + c, total);
      });
    });
  }

  PoolingGeometry g_;
  PoolingWalk windows_, positions_;
  bool backward_;
};

// y = sum over the window / size of the window clipped to the padded image.
template <typename E>
class AveragePoolingKernel : public Kernel {
 public:
  explicit AveragePoolingKernel(const PoolingGeometry& geometry)
      : channels_(geometry.channels),
        windows_(PoolingWalk::of_windows(geometry)),
        positions_(PoolingWalk::of_positions(geometry)) {}

  std::string name() const override { return "native average-pooling"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    windows_.run([=, channels = channels_](int64_t to, int64_t from, auto lines, auto points) {
      const float weight = lines[0].weight * points[0].weight;  // of one window: the same for all its links
      by_lanes(0, channels, [&]<typename V>(int64_t c) {
        V total{};
        for (const PoolingLink& line : lines) {
          for (const PoolingLink& point : points) total += load<V>(x + from + line.offset + point.offset + c);
        }
        store(y + to + c, total * weight);
      });
    });
  }

  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    positions_.run([=, channels = channels_](int64_t to, int64_t from, auto lines, auto points) {
      by_lanes(0, channels, [&]<typename V>(int64_t c) {
        V total{};
        for (const PoolingLink& line : lines) {
          for (const PoolingLink& point : points)
            total += load<V>(dy + from + line.offset + point.offset + c) * (line.weight * point.weight);
        }
        store(dx + to + c, total);
      });
    });
  }

 private:
  int64_t channels_;
  PoolingWalk windows_, positions_;
};

bool has_empty_window(const PoolingAxis& axis) {
  for (int64_t o = axis.windows.begin; o < axis.windows.end; ++o) {
    if (axis.positions(o).size() == 0) return true;
  }
  return false;
}

}  // namespace

}  // namespace native

KernelOffer make_native_pooling(const Task& task) {
  auto* pooling = dynamic_cast<const Pooling*>(&task.layer());
  if (!pooling) return {nullptr, "not a Pooling"};
  if (task.layers.size() > 1) return {nullptr, "a layer after Pooling does not fuse"};
  if (task.outputs.size() > 1) return {nullptr, "an output of indices"};
  const native::PoolingGeometry geometry(task, pooling->options().resolve(task.inputs[0]));
  for (const auto* axis : {&geometry.depth, &geometry.height, &geometry.width}) {
    if (native::has_empty_window(*axis)) return {nullptr, "a window outside the image"};
  }
  switch (pooling->options().method) {
    case PoolingOptions::Method::average:
      return native::offer_by_type(
          task, [&]<typename E>() { return std::make_unique<native::AveragePoolingKernel<E>>(geometry); });
    case PoolingOptions::Method::max:
      return native::offer_by_type(task, [&]<typename E>() -> std::unique_ptr<Kernel> {
        if (geometry.taps() > 256)
          return std::make_unique<native::MaxPoolingKernel<E, int32_t>>(geometry, task.has_backward());
        return std::make_unique<native::MaxPoolingKernel<E, uint8_t>>(geometry, task.has_backward());
      });
    case PoolingOptions::Method::stochastic:
      break;
  }
  return {nullptr, "stochastic pooling"};
}

}  // namespace cortado
