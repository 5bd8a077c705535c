#include "cortado/layers/convolution.h"

#include <algorithm>
#include <utility>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/fused_relu.h"
#include "cortado/kernels/lowering/problem.h"
#include "cortado/kernels/native/relu_mask.h"
#include "cortado/kernels/onednn/engine.h"
#include "cortado/kernels/pairs/pairs.h"
#include "cortado/kernels/pairs/right_operand.h"
#include "cortado/kernels/pairs/row_product.h"
#include "cortado/kernels/pairs/weight_product.h"

namespace cortado {

namespace pairs {

namespace {

// Weights lie in the canonical order, [outputs][inputs]. Scratch memory of forward() and backward(): the
// weights as right operand; of backward_weights(): the product's.
class PointwiseKernel : public Kernel {
 public:
  PointwiseKernel(const PointwiseRows& rows, const Task& task)
      : rows_(rows),
        rectifies_(task.layers.size() > 1),
        forward_(rows.image, rows.windows),
        backward_(rows.windows, rows.image),
        weights_(rows),
        image_(task.local_input(0).size()),
        windows_(task.local_output(0).size()),
        covers_image_(rows.image.dense() && rows.image.count() * rows.image.channels == image_),
        weights_step_(any_wanted(task.parameter_gradients)) {}

  std::string name() const override { return "pairs"; }
  Bytes scratch_bytes() const override {
    const int64_t words = std::max(panel_words(inputs(), outputs()), panel_words(outputs(), inputs()));
    return {std::max(words * int64_t{sizeof(Word)}, static_cast<int64_t>(weights_.scratch_bytes()))};
  }
  BackwardReads backward_reads() const override { return {.inputs = weights_step_, .outputs = rectifies_}; }
  bool overwrites_output_gradients() const override { return rectifies_; }

  void forward(const Arguments& a) override {
    auto* const right = reinterpret_cast<Word*>(a.scratch);
    pack_columns(a.parameters[0], inputs(), outputs(), right);
    const float* const bias = a.parameters.size() > 1 ? a.parameters[1] : nullptr;
    forward_.run(elements<bf16>(a.inputs[0]), right, elements<bf16>(a.outputs[0]), {bias, rectifies_});
  }

  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (!weights_step_ || a.input_gradients_first) mask(a);
    auto* const right = reinterpret_cast<Word*>(a.scratch);
    pack_rows(a.parameters[0], outputs(), inputs(), right);
    bf16* const gradient = elements<bf16>(a.input_gradients[0]);
    if (!covers_image_)
      parallel_ranges(
          image_, [&](int64_t begin, int64_t end) { std::fill(gradient + begin, gradient + end, bf16{}); });
    backward_.run(elements<bf16>(a.output_gradients[0]), right, gradient, {});
  }

  void backward_weights(const Arguments& a) override {
    if (!weights_step_) return;
    if (!a.input_gradients_first) mask(a);
    float* const bias = a.parameter_gradients.size() > 1 ? a.parameter_gradients[1] : nullptr;
    weights_.run({elements<bf16>(a.inputs[0]), elements<bf16>(a.output_gradients[0])},
                 a.parameter_gradients[0], bias, a.scratch);
  }

 private:
  int64_t inputs() const { return rows_.image.channels; }
  int64_t outputs() const { return rows_.windows.channels; }
  void mask(const Arguments& a) const {
    bf16* const gradient = elements<bf16>(a.output_gradients[0]);
    if (rectifies_) native::relu_mask(gradient, gradient, elements<bf16>(a.outputs[0]), windows_);
  }

  PointwiseRows rows_;
  bool rectifies_;
  RowProduct forward_, backward_;
  WeightProduct weights_;
  int64_t image_, windows_;  // elements
  bool covers_image_;        // every pixel has a window
  bool weights_step_;        // backward_weights runs, too
};

// oneDNN is faster between few channels. The layer alone says so, whatever the device's share.
bool has_few_channels(const Task& task) {
  constexpr int64_t fewest = 16, fewest_weights = 1024;
  const int64_t inputs = task.inputs[0][1], outputs = task.outputs[0][1];
  return std::min(inputs, outputs) < fewest || inputs * outputs < fewest_weights;
}

}  // namespace

}  // namespace pairs

KernelOffer make_pairs(const Task& task) {
  using namespace pairs;
  const auto* layer = dynamic_cast<const Convolution*>(&task.layer());
  if (!layer) return {nullptr, "not a Convolution"};
  if (task.input_type(0) != ElementType::bf16 || task.output_type(0) != ElementType::bf16)
    return {nullptr, "a tensor in f32"};
  if (has_few_channels(task)) return {nullptr, "few channels"};
  if (!onednn::has_bf16_instructions()) return {nullptr, "no instructions for bf16 products"};
  if (auto reason = chain_refusal(task); !reason.empty()) return {nullptr, reason};
  KernelOffer offer;
  const auto problem = lowering::convolution_problem(layer->options(), task.inputs[0], task.input_boxes[0],
                                                     task.outputs[0], task.output_boxes[0], offer.refusal);
  if (!problem) return offer;
  const auto rows = pointwise_rows(*problem, offer.refusal);
  if (!rows) return offer;
  if (rows->image.channels % 2 != 0 || rows->windows.channels % 2 != 0)
    return {nullptr, "an odd number of channels"};
  offer.kernel = std::make_unique<PointwiseKernel>(*rows, task);
  return offer;
}

}  // namespace cortado
