#include "cortado/layers/scale.h"

#include <optional>

#include "cortado/kernels/native/broadcast.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/bias.h"

namespace cortado {

namespace native {

namespace {

// The scale or the bias: the second input or a parameter.
struct Operand {
  BroadcastOperand memory;
  bool input;
  int number;    // of the input or parameter
  bool learned;  // wants a gradient

  const float* value(const Arguments& arguments) const {
    return input ? arguments.inputs[number] : arguments.parameters[number];
  }
  float* gradient(const Arguments& arguments) const {
    return input ? arguments.input_gradients[number] : arguments.parameter_gradients[number];
  }
};

// y = x * scale + bias, either absent, each repeated along the axes that it lacks; dx = dy * scale, dscale =
// sum dy * x, dbias = sum dy. One pass forward and one backward.
template <typename E>
class ScaleKernel : public Kernel {
 public:
  ScaleKernel(const BroadcastLayout& layout, std::optional<Operand> scale, std::optional<Operand> bias,
              const Task& task)
      : x_(layout),
        scale_(std::move(scale)),
        bias_(std::move(bias)),
        inputs_(task.inputs.size()),
        // The scale as an input is read for the gradient of the data, the data for the gradient of the scale.
        reads_inputs_(scale_ && (scale_->learned || (scale_->input && task.input_gradients[0]))) {}

  std::string name() const override { return scale_ ? "native scale" : "native bias"; }
  Bytes scratch_bytes() const override {
    Bytes bytes = broadcast_sums_scratch<2>(x_);
    for (const auto* operand : {&scale_, &bias_})
      if (*operand) bytes = bytes + (*operand)->memory.room() + (*operand)->memory.room();
    return bytes;
  }
  BackwardReads backward_reads() const override { return {.inputs = reads_inputs_, .outputs = false}; }
  bool in_place() const override { return true; }
  bool passes_output_gradient() const override { return !scale_ && inputs_ == 1; }

  void forward(const Arguments& arguments) override {
    Room room{arguments.scratch};
    const float* scale = scale_ ? packed(*scale_, arguments, room) : nullptr;
    const float* bias = bias_ ? packed(*bias_, arguments, room) : nullptr;
    if (!scale) return write<false, true>(arguments, nullptr, bias);
    bias ? write<true, true>(arguments, scale, bias) : write<true, false>(arguments, scale, nullptr);
  }

  void backward(const Arguments& arguments) override {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    const E* dx = elements<E>(arguments.input_gradients[0]);
    const bool writes = dx && (scale_ || dx != dy);
    Room room{arguments.scratch};
    const float* scale = scale_ && writes ? packed(*scale_, arguments, room) : nullptr;
    float* dscale = sums_of(scale_, arguments, room);
    float* dbias = sums_of(bias_, arguments, room);
    if (dscale || dbias) {
      const Sums sums{dbias, dscale, room.free};
      !writes ? reduce<2, false, false>(arguments, nullptr, sums)
      : scale ? reduce<2, true, true>(arguments, scale, sums)
              : reduce<2, true, false>(arguments, nullptr, sums);
      if (dscale) unpack(*scale_, arguments, dscale);
      if (dbias) unpack(*bias_, arguments, dbias);
    } else if (writes) {
      scale ? reduce<0, true, true>(arguments, scale, {}) : reduce<0, true, false>(arguments, nullptr, {});
    }
  }

 private:
  // Scratch that nobody has taken.
  struct Room {
    std::byte* free;
    float* take(Bytes bytes) {
      std::byte* taken = free;
      free += bytes.count;
      return reinterpret_cast<float*>(taken);
    }
  };
  struct Sums {
    float *bias = nullptr, *scale = nullptr;
    std::byte* scratch = nullptr;
  };

  static const float* packed(const Operand& operand, const Arguments& arguments, Room& room) {
    return operand.memory.pack(operand.value(arguments), room.take(operand.memory.room()));
  }
  // Returns where the operand's gradient is summed; null where none is wanted.
  static float* sums_of(const std::optional<Operand>& operand, const Arguments& arguments, Room& room) {
    if (!operand || !operand->gradient(arguments)) return nullptr;
    float* own = room.take(operand->memory.room());
    return operand->memory.packed() ? operand->gradient(arguments) : own;
  }
  static void unpack(const Operand& operand, const Arguments& arguments, const float* sums) {
    if (!operand.memory.packed()) operand.memory.unpack(sums, operand.gradient(arguments));
  }

  template <bool scaled, bool biased>
  void write(const Arguments& arguments, const float* scale, const float* bias) const {
    const E* x = elements<E>(arguments.inputs[0]);
    E* y = elements<E>(arguments.outputs[0]);
    by_streaming(y, x_, x == y, [&](auto streaming) {
      visit_broadcast<0>(x_, arguments.scratch, {},
                         [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                           V value = load<V>(x + at.i);
                           if constexpr (scaled) value = value * at.of(scale);
                           if constexpr (biased) value = value + at.of(bias);
                           store<streaming()>(y + at.i, value);
                           return std::array<V, 0>{};
                         });
    });
  }

  template <int terms, bool writes, bool scaled>
  void reduce(const Arguments& arguments, const float* scale, const Sums& sums) const {
    const E* dy = elements<E>(arguments.output_gradients[0]);
    E* dx = elements<E>(arguments.input_gradients[0]);
    // Without a gradient of the scale, x may not be there to read.
    const E* x = sums.scale ? elements<E>(arguments.inputs[0]) : dy;
    std::array<float*, terms> results;
    if constexpr (terms == 2) results = {sums.bias, sums.scale};
    by_streaming(writes ? dx : nullptr, x_, dx == dy, [&](auto streaming) {
      visit_broadcast<terms>(x_, sums.scratch, results,
                             [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                               const V gradient = load<V>(dy + at.i);
                               std::array<V, terms> term;
                               if constexpr (terms == 2) term = {gradient, gradient * load<V>(x + at.i)};
                               if constexpr (scaled) {
                                 store<streaming()>(dx + at.i, gradient * at.of(scale));
                               } else if constexpr (writes) {
                                 store<streaming()>(dx + at.i, gradient);
                               }
                               return term;
                             });
    });
  }

  BroadcastLayout x_;
  std::optional<Operand> scale_, bias_;
  size_t inputs_;
  bool reads_inputs_;
};

struct Wanted {
  bool scale = false, bias = false;
};

KernelOffer offer_scale(const Broadcast& broadcast, Wanted wanted, const Task& task) {
  if (task.layers.size() > 1) return {nullptr, "a layer after Scale or Bias does not fuse"};
  if (task.output_type(0) != task.input_type(0)) return {nullptr, "an output of another type than the input"};
  using Order = BroadcastOperand::Order;
  const bool two = task.inputs.size() == 2;
  if (two && task.input_type(1) == ElementType::f64) return {nullptr, "an operand of f64"};
  const Shape x = task.local_output(0);
  const int first = broadcast.first_axis(task.inputs), axes = broadcast.operand(task.inputs).rank();
  int parameter = 0;
  bool input = two;  // the first operand is the second input
  auto next = [&]() {
    const int number = input ? 1 : parameter++;
    Operand operand{{x, first, axes, input ? Order::tensor : Order::parameter,
                     input ? task.input_type(1) : ElementType::f32},
                    input,
                    number,
                    input ? task.input_gradients[number] : task.parameter_gradients[number]};
    input = false;
    return operand;
  };
  std::optional<Operand> scale, bias;
  if (wanted.scale) scale = next();
  if (wanted.bias) bias = next();
  const BroadcastLayout layout = broadcast_layout(x, first, axes);
  return offer_by_type(task.input_type(0), [&]<typename E>() {
    return std::make_unique<ScaleKernel<E>>(layout, scale, bias, task);
  });
}

}  // namespace

}  // namespace native

KernelOffer make_native_scale(const Task& task) {
  if (auto* scale = dynamic_cast<const Scale*>(&task.layer())) {
    return native::offer_scale(scale->options().broadcast,
                               {.scale = true, .bias = scale->options().bias_term}, task);
  }
  if (auto* bias = dynamic_cast<const Bias*>(&task.layer())) {
    return native::offer_scale(bias->options().broadcast, {.bias = true}, task);
  }
  return {nullptr, "neither Scale nor Bias"};
}

}  // namespace cortado
