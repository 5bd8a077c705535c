#include "cortado/layers/pooling.h"

#include <algorithm>
#include <array>

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

// N x D x H x W x C; missing spatial axes have one position and one window.
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
  int64_t tap(int64_t d, int64_t h, int64_t w) const {
    return (d * height.window.kernel + h) * width.window.kernel + w;
  }
  // Offsets of the first channel.
  int64_t input_offset(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return offset(n, d, h, w, &PoolingAxis::held);
  }
  int64_t output_offset(int64_t n, int64_t d, int64_t h, int64_t w) const {
    return offset(n, d, h, w, &PoolingAxis::windows);
  }
  int64_t input_size() const { return size(&PoolingAxis::held); }
  int64_t output_size() const { return size(&PoolingAxis::windows); }

 private:
  int64_t offset(int64_t n, int64_t d, int64_t h, int64_t w, Range PoolingAxis::*of) const {
    const Range &depths = depth.*of, &heights = height.*of, &widths = width.*of;
    int64_t row = (n * depths.size() + d - depths.begin) * heights.size() + h - heights.begin;
    return (row * widths.size() + w - widths.begin) * channels;
  }
  int64_t size(Range PoolingAxis::*of) const {
    return samples * (depth.*of).size() * (height.*of).size() * (width.*of).size() * channels;
  }
};

// A position that a window reads, or a window that a position is read by.
struct PoolingLink {
  int64_t offset;    // of its first channel
  int32_t tap;       // place of the position in the window
  float weight = 1;  // average: 1 / size of the window
};
using PoolingLinks = std::vector<PoolingLink>;

// Says which of a window's links a list has. A window of a whole image has more positions than a list shall
// hold.
struct PoolingBlock {
  bool first = true, last = true;
};
constexpr size_t most_links = 4096;

// visit(block) for each list of links, in order.
template <typename Visit>
void link_window(const PoolingGeometry& g, int64_t n, int64_t od, int64_t oh, int64_t ow, PoolingLinks& links,
                 Visit&& visit) {
  links.clear();
  PoolingBlock block{.first = true, .last = false};
  const Range depths = g.depth.positions(od), heights = g.height.positions(oh),
              widths = g.width.positions(ow);
  for (int64_t d = depths.begin; d < depths.end; ++d) {
    for (int64_t h = heights.begin; h < heights.end; ++h) {
      for (int64_t w = widths.begin; w < widths.end; ++w) {
        if (links.size() == most_links) {
          visit(block);
          block.first = false;
          links.clear();
        }
        int64_t tap =
            g.tap(d - g.depth.window.first(od), h - g.height.window.first(oh), w - g.width.window.first(ow));
        links.push_back({g.input_offset(n, d, h, w), static_cast<int32_t>(tap)});
      }
    }
  }
  block.last = true;
  visit(block);
}

template <typename Visit>
void link_position(const PoolingGeometry& g, int64_t n, int64_t d, int64_t h, int64_t w, PoolingLinks& links,
                   Visit&& visit) {
  links.clear();
  const Range depths = g.depth.covering(d), heights = g.height.covering(h), widths = g.width.covering(w);
  for (int64_t od = depths.begin; od < depths.end; ++od) {
    for (int64_t oh = heights.begin; oh < heights.end; ++oh) {
      for (int64_t ow = widths.begin; ow < widths.end; ++ow) {
        int64_t tap =
            g.tap(d - g.depth.window.first(od), h - g.height.window.first(oh), w - g.width.window.first(ow));
        int64_t size = g.depth.padded_size(od) * g.height.padded_size(oh) * g.width.padded_size(ow);
        links.push_back({g.output_offset(n, od, oh, ow), static_cast<int32_t>(tap), 1.0f / size});
      }
    }
  }
  visit(PoolingBlock{});
}

// visit(offset, links, block, partial) for the range of each axis that `of` names, rows of w in parallel.
// `partial` is the thread's own: what a window keeps from one list of its links to the next.
template <typename Link, typename Visit>
void visit_pooling(const PoolingGeometry& g, Range PoolingAxis::*of, Link&& link, Visit&& visit) {
  const Range depths = g.depth.*of, heights = g.height.*of, widths = g.width.*of;
  parallel_ranges(g.samples * depths.size() * heights.size(), [&](int64_t begin, int64_t end) {
    PoolingLinks links;
    std::vector<float> partial;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t h = heights.begin + row % heights.size();
      const int64_t d = depths.begin + row / heights.size() % depths.size();
      const int64_t n = row / heights.size() / depths.size();
      for (int64_t w = widths.begin; w < widths.end; ++w) {
        const int64_t offset = (row * widths.size() + w - widths.begin) * g.channels;
        link(g, n, d, h, w, links, [&](const PoolingBlock& block) { visit(offset, links, block, partial); });
      }
    }
    finish_streaming();
  });
}

// Taps of the maxima, one per output: bytes where a window has at most 256, else ints.
template <typename V, typename Tap>
ints_of<V> load_taps(const Tap* taps) {
  if constexpr (std::is_same_v<V, float>) {
    return *taps;
  } else if constexpr (std::is_same_v<Tap, uint8_t>) {
    return widen(taps);
  } else {
    ints values;
    std::memcpy(&values, taps, sizeof(values));
    return values;
  }
}

template <typename V, typename Tap>
void store_taps(Tap* taps, ints_of<V> values) {
  if constexpr (std::is_same_v<V, float>) {
    *taps = static_cast<Tap>(values);
  } else if constexpr (std::is_same_v<Tap, uint8_t>) {
    narrow(taps, values);
  } else {
    std::memcpy(taps, &values, sizeof(values));
  }
}

// y = the maximum of each window; backward, every position gathers the dy of the windows whose maximum it
// was. Saved: the tap of each maximum, when there is a backward pass.
template <typename E, typename Tap>
class MaxPoolingKernel : public Kernel {
 public:
  MaxPoolingKernel(const PoolingGeometry& geometry, bool backward) : g_(geometry), backward_(backward) {}

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
    auto link = [](auto&&... given) { link_window(given...); };
    visit_pooling(g_, &PoolingAxis::windows, link,
                  [=, this](int64_t out, const PoolingLinks& links, const PoolingBlock& block, auto&) {
                    by_lanes(0, g_.channels, [&]<typename V>(int64_t c) {
                      V best = block.first ? load<V>(x + links[0].offset + c) : load<V>(y + out + c),
                        all = 0 * best;
                      ints_of<V> where = ints_of<V>{} + links[0].tap;
                      if constexpr (keep_taps) {
                        if (!block.first) where = load_taps<V>(taps + out + c);
                      }
                      for (size_t i = block.first ? 1 : 0; i < links.size(); ++i) {
                        V value = load<V>(x + links[i].offset + c);
                        auto better = value > best;
                        best = better ? value : best;
                        where = better ? ints_of<V>{} + links[i].tap : where;
                        all = carry(all, value);
                      }
                      best = best + all;
                      block.last ? store<streaming>(y + out + c, best) : store(y + out + c, best);
                      if constexpr (keep_taps) store_taps<V>(taps + out + c, where);
                    });
                  });
  }

  template <bool streaming>
  void run_backward(const Arguments& arguments) const {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    const Tap* taps = reinterpret_cast<const Tap*>(arguments.saved);
    auto link = [](auto&&... given) { link_position(given...); };
    visit_pooling(g_, &PoolingAxis::held, link,
                  [=, this](int64_t in, const PoolingLinks& links, PoolingBlock, auto&) {
                    by_lanes(0, g_.channels, [&]<typename V>(int64_t c) {
                      V total{};
                      for (const PoolingLink& link : links) {
                        auto here = load_taps<V>(taps + link.offset + c) == ints_of<V>{} + link.tap;
                        total += here ? load<V>(dy + link.offset + c) : V{};
                      }
                      store<streaming>(dx + in + c, total);
                    });
                  });
  }

  PoolingGeometry g_;
  bool backward_;
};

// y = sum over the window / size of the window clipped to the padded image.
template <typename E>
class AveragePoolingKernel : public Kernel {
 public:
  explicit AveragePoolingKernel(const PoolingGeometry& geometry) : g_(geometry) {}

  std::string name() const override { return "native average-pooling"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    auto link = [](const PoolingGeometry& g, int64_t n, int64_t od, int64_t oh, int64_t ow,
                   PoolingLinks& links, auto&& visit) {
      const float weight =
          1.0f / (g.depth.padded_size(od) * g.height.padded_size(oh) * g.width.padded_size(ow));
      link_window(g, n, od, oh, ow, links, [&](const PoolingBlock& block) {
        links.front().weight = block.last ? weight : 1;
        visit(block);
      });
    };
    visit_pooling(g_, &PoolingAxis::windows, link,
                  [=, this](int64_t out, const PoolingLinks& links, const PoolingBlock& block,
                            std::vector<float>& partial) {
                    if (!block.last) partial.resize(g_.channels);
                    by_lanes(0, g_.channels, [&]<typename V>(int64_t c) {
                      V total = block.first ? load<V>(x + links[0].offset + c) : load<V>(partial.data() + c);
                      for (size_t i = block.first ? 1 : 0; i < links.size(); ++i)
                        total += load<V>(x + links[i].offset + c);
                      total = total * links.front().weight;
                      block.last ? store(y + out + c, total) : store(partial.data() + c, total);
                    });
                  });
  }

  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    auto link = [](auto&&... given) { link_position(given...); };
    visit_pooling(g_, &PoolingAxis::held, link,
                  [=, this](int64_t in, const PoolingLinks& links, PoolingBlock, auto&) {
                    by_lanes(0, g_.channels, [&]<typename V>(int64_t c) {
                      V total{};
                      for (const PoolingLink& link : links)
                        total += load<V>(dy + link.offset + c) * link.weight;
                      store(dx + in + c, total);
                    });
                  });
  }

 private:
  PoolingGeometry g_;
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
