#include "cortado/layers/shuffle_channel.h"

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"

namespace cortado {
namespace native {
namespace {

// Of each pixel, channel k of run i is channel k * groups + i of what is dealt out; `deals`: copies from
// runs, else back. A constant number of groups lets the compiler interleave vectors.
template <int64_t constant, bool deals, typename E>
void copy_pixels(const E* from, E* to, int64_t pixels, int64_t groups, int64_t run) {
  const int64_t count = constant > 0 ? constant : groups;
  for (int64_t pixel = 0; pixel < pixels; ++pixel, from += count * run, to += count * run) {
    for (int64_t k = 0; k < run; ++k) {
      for (int64_t i = 0; i < count; ++i) {
        const int64_t in_runs = i * run + k, dealt = k * count + i;
        to[deals ? dealt : in_runs] = from[deals ? in_runs : dealt];
      }
    }
  }
}

template <typename E>
class ShuffleChannelKernel : public Kernel {
 public:
  ShuffleChannelKernel(const Shape& shape, int64_t groups)
      : channels_(shape[shape.canonical_axis(1)]), pixels_(shape.size() / channels_), groups_(groups) {}

  std::string name() const override { return "native shuffle"; }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    over_pixels<true>(x, y);
  }

  void backward(const Arguments& arguments) override {
    if (!arguments.input_gradients[0]) return;
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    over_pixels<false>(dy, dx);
  }

 private:
  template <bool deals>
  void over_pixels(const E* from, E* to) const {
    const auto copy = groups_ == 2   ? copy_pixels<2, deals, E>
                      : groups_ == 3 ? copy_pixels<3, deals, E>
                                     : copy_pixels<0, deals, E>;
    parallel_ranges(pixels_, [&](int64_t begin, int64_t end) {
      copy(from + begin * channels_, to + begin * channels_, end - begin, groups_, channels_ / groups_);
    });
  }

  int64_t channels_, pixels_, groups_;
};

}  // namespace
}  // namespace native

KernelOffer make_native_shuffle_channel(const Task& task) {
  const auto* layer = dynamic_cast<const ShuffleChannel*>(&task.layer());
  if (!layer || task.layers.size() != 1) return {nullptr, "only for ShuffleChannel"};
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::ShuffleChannelKernel<E>>(task.local_input(0), layer->options().group);
  });
}

}  // namespace cortado
