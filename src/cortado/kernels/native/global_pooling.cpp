#include <algorithm>

#include "cortado/kernels/native/broadcast.h"
#include "cortado/kernels/native/by_type.h"
#include "cortado/kernels/native/native.h"
#include "cortado/layers/pooling.h"

namespace cortado {

namespace native {

namespace {

// y = the mean of each channel's image; dx = dy / positions. Rows of channels are read in the order of
// memory, and several threads share an image where images are few.
template <typename E>
class GlobalAverageKernel : public Kernel {
 public:
  explicit GlobalAverageKernel(const Shape& x)
      : x_(broadcast_layout(x, 0, 2)), weight_(1.0f / x.spatial_size()) {}

  std::string name() const override { return "native global-average-pooling"; }
  Bytes scratch_bytes() const override { return means_bytes() + broadcast_sums_scratch<1>(x_); }
  BackwardReads backward_reads() const override { return {.inputs = false, .outputs = false}; }

  void forward(const Arguments& arguments) override {
    const E* x = elements<E>(arguments.inputs[0]);
    float* means = reinterpret_cast<float*>(arguments.scratch);
    visit_broadcast<1>(x_, arguments.scratch + means_bytes().count, {means},
                       [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                         return std::array<V, 1>{load<V>(x + at.i)};
                       });
    E* y = elements<E>(arguments.outputs[0]);
    for (int64_t i = 0; i < x_.operand_size(); ++i) store(y + i, means[i] * weight_);
  }

  void backward(const Arguments& arguments) override {
    E* dx = elements<E>(arguments.input_gradients[0]);
    if (!dx) return;
    float* shares = reinterpret_cast<float*>(arguments.scratch);
    const E* dy = elements<E>(arguments.output_gradients[0]);
    for (int64_t i = 0; i < x_.operand_size(); ++i) shares[i] = load<float>(dy + i) * weight_;
    by_streaming(dx, x_, false, [&](auto streaming) {
      visit_broadcast<0>(x_, arguments.scratch, {},
                         [=]<typename V, bool single>(const BroadcastPlace<V, single>& at) {
                           store<streaming()>(dx + at.i, at.of(shares));
                           return std::array<V, 0>{};
                         });
    });
  }

 private:
  Bytes means_bytes() const { return {(x_.operand_size() + 15) / 16 * 16 * int64_t{sizeof(float)}}; }

  BroadcastLayout x_;
  float weight_;
};

// Whether the one window of the axis is the whole image, which this device holds.
bool is_global(const Task& task, const WindowAxis& window, int axis) {
  const int64_t image = task.inputs[0][axis];
  return window.pad == 0 && window.kernel >= image && task.outputs[0][axis] == 1 &&
         task.input_boxes[0][axis].size() == image && task.output_boxes[0][axis].size() == 1;
}

}  // namespace

}  // namespace native

KernelOffer make_native_global_pooling(const Task& task) {
  auto* pooling = dynamic_cast<const Pooling*>(&task.layer());
  if (!pooling || task.layers.size() > 1) return {nullptr, "only for Pooling"};
  if (pooling->options().method != PoolingOptions::Method::average) return {nullptr, "not an average"};
  const Window window = pooling->options().resolve(task.inputs[0]);
  for (size_t i = 0; i < window.size(); ++i) {
    if (!native::is_global(task, window[i], static_cast<int>(i) + 2))
      return {nullptr, "windows of parts of the image"};
  }
  return native::offer_by_type(task, [&]<typename E>() {
    return std::make_unique<native::GlobalAverageKernel<E>>(task.local_input(0));
  });
}

}  // namespace cortado
