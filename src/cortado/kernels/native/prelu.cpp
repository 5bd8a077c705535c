#include "cortado/layers/prelu.h"

#include <numeric>

#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/channels.h"
#include "cortado/kernels/native/native.h"

namespace cortado {

namespace native {

namespace {

// y = x > 0 ? x : slope * x; dx = x > 0 ? dy : slope * dy, dslope = sum of dy * x where x <= 0.
template <typename E>
class PReluKernel : public Kernel {
 public:
  PReluKernel(bool channel_shared, const Task& task)
      : shared_(channel_shared), x_(task.local_input(0)), learned_(task.parameter_gradients[0]) {}

  std::string name() const override { return "native prelu"; }
  Bytes scratch_bytes() const override {
    return channel_sums_scratch<1>(x_.channels) + Bytes{x_.channels * int64_t{sizeof(float)}};
  }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }
  bool in_place() const override { return true; }

  void forward(const Arguments& arguments) override {
    apply(arguments, elements<E>(arguments.inputs[0]), elements<E>(arguments.outputs[0]));
  }

  void backward(const Arguments& arguments) override {
    if (learned_) reduce_gradient(arguments);
    if (arguments.input_gradients[0]) {
      apply(arguments, elements<E>(arguments.output_gradients[0]), elements<E>(arguments.input_gradients[0]));
    }
  }

 private:
  // target = x > 0 ? source : slope * source.
  void apply(const Arguments& arguments, const E* source, E* target) const {
    const E* x = elements<E>(arguments.inputs[0]);
    const float* slope = arguments.parameters[0];
    if (shared_) {
      float* repeated = reinterpret_cast<float*>(arguments.scratch);
      std::fill_n(repeated, x_.channels, *slope);
      slope = repeated;
    }
    map_rows(target, x_, source == target, [=]<typename V>(int64_t i, int64_t c) {
      V value = load<V>(source + i);
      return load<V>(x + i) > 0 ? value : value * load<V>(slope + c);
    });
  }

  void reduce_gradient(const Arguments& arguments) const {
    const E *x = elements<E>(arguments.inputs[0]), *dy = elements<E>(arguments.output_gradients[0]);
    const int64_t channels = x_.channels;
    const double* sums =
        channel_sums<1>(x_, arguments.scratch, [=]<typename V>(int64_t, int64_t row, int64_t c) {
          V value = load<V>(x + row * channels + c);
          return std::array<V, 1>{value > 0 ? V{} : value * load<V>(dy + row * channels + c)};
        });
    float* gradient = arguments.parameter_gradients[0];
    if (shared_) {
      *gradient = static_cast<float>(std::accumulate(sums, sums + channels, 0.0));
    } else {
      std::copy_n(sums, channels, gradient);
    }
  }

  bool shared_;
  ChannelRows x_;
  bool learned_;
};

}  // namespace

}  // namespace native

KernelOffer make_native_prelu(const Task& task) {
  auto* prelu = dynamic_cast<const PRelu*>(&task.layer());
  if (!prelu) return {nullptr, "not a PReLU"};
  if (task.layers.size() > 1) return {nullptr, "a layer after PReLU does not fuse"};
  if (task.inputs[0].rank() < 2) return {nullptr, "a tensor without channel axis"};
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::PReluKernel<E>>(prelu->options().channel_shared, task);
  });
}

}  // namespace cortado
