#include "cortado/layers/scale.h"

#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/channels.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/bias.h"

namespace cortado {

namespace native {

namespace {

// Places of the parameters of a Scale or Bias; -1: it has none.
struct ScaleParameters {
  int scale = -1, bias = -1;
};

// y = x * scale + bias per channel; dx = dy * scale, dscale = sum dy * x, dbias = sum dy.
template <typename E>
class ScaleKernel : public Kernel {
 public:
  ScaleKernel(ScaleParameters places, const Task& task)
      : places_(places),
        x_(task.local_input(0)),
        scale_gradient_(places.scale >= 0 && task.parameter_gradients[places.scale]),
        bias_gradient_(places.bias >= 0 && task.parameter_gradients[places.bias]) {}

  std::string name() const override { return places_.scale < 0 ? "native bias" : "native scale"; }
  Bytes scratch_bytes() const override {
    return channel_sums_scratch<2>(x_.channels) + Bytes{x_.channels * int64_t{sizeof(float)}};
  }
  BackwardReads backward_reads() const override { return {.inputs = scale_gradient_, .outputs = false}; }
  bool in_place() const override { return true; }
  bool passes_output_gradient() const override { return places_.scale < 0; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    const float* scale = parameter(arguments, places_.scale, 1);
    if (places_.bias < 0) {
      map_rows(y, x_, x == y,
               [=]<typename V>(int64_t i, int64_t c) { return load<V>(x + i) * load<V>(scale + c); });
      return;
    }
    const float* bias = arguments.parameters[places_.bias];
    map_rows(y, x_, x == y, [=]<typename V>(int64_t i, int64_t c) {
      return load<V>(x + i) * load<V>(scale + c) + load<V>(bias + c);
    });
  }

  void backward(const Arguments& arguments) override {
    reduce_gradients(arguments);
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx || (dx == dy && places_.scale < 0)) return;
    const float* scale = parameter(arguments, places_.scale, 1);
    map_rows(dx, x_, dx == dy,
             [=]<typename V>(int64_t i, int64_t c) { return load<V>(dy + i) * load<V>(scale + c); });
  }

 private:
  // The parameter at `place`, or scratch full of `value`.
  const float* parameter(const Arguments& arguments, int place, float value) const {
    if (place >= 0) return arguments.parameters[place];
    float* constant = reinterpret_cast<float*>(arguments.scratch);
    return std::fill_n(constant, x_.channels, value), constant;
  }

  void reduce_gradients(const Arguments& arguments) const {
    if (!scale_gradient_ && !bias_gradient_) return;
    const E* dy = elements<E>(arguments.output_gradients[0]);
    // Without a gradient of the scale, x is not there to read.
    const E* x = scale_gradient_ ? elements<E>(arguments.inputs[0]) : dy;
    const int64_t channels = x_.channels;
    const double* sums =
        channel_sums<2>(x_, arguments.scratch, [=]<typename V>(int64_t, int64_t row, int64_t c) {
          V gradient = load<V>(dy + row * channels + c);
          return std::array<V, 2>{gradient, gradient * load<V>(x + row * channels + c)};
        });
    if (bias_gradient_) std::copy_n(sums, channels, arguments.parameter_gradients[places_.bias]);
    if (scale_gradient_) std::copy_n(sums + channels, channels, arguments.parameter_gradients[places_.scale]);
  }

  ScaleParameters places_;
  ChannelRows x_;
  bool scale_gradient_, bias_gradient_;
};

KernelOffer offer_scale(const Broadcast& broadcast, ScaleParameters places, const Task& task) {
  if (task.layers.size() > 1) return {nullptr, "a layer after Scale or Bias does not fuse"};
  if (task.inputs.size() > 1) return {nullptr, "the operand is an input"};
  if (task.inputs[0].rank() < 2 || broadcast.first_axis(task.inputs) != 1 ||
      broadcast.operand(task.inputs) != Shape{task.inputs[0][1]}) {
    return {nullptr, "the operand is not per channel"};
  }
  return offer_by_type(task, [&]<typename E>() { return std::make_unique<ScaleKernel<E>>(places, task); });
}

}  // namespace

}  // namespace native

KernelOffer make_native_scale(const Task& task) {
  if (auto* scale = dynamic_cast<const Scale*>(&task.layer())) {
    return native::offer_scale(scale->options().broadcast,
                               {.scale = 0, .bias = scale->options().bias_term ? 1 : -1}, task);
  }
  if (auto* bias = dynamic_cast<const Bias*>(&task.layer())) {
    return native::offer_scale(bias->options().broadcast, {.bias = 0}, task);
  }
  return {nullptr, "neither Scale nor Bias"};
}

}  // namespace cortado
