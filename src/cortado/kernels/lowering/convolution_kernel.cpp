#include "cortado/kernels/lowering/convolution_kernel.h"

#include <algorithm>

#include "cortado/kernels/lowering/channels.h"
#include "cortado/kernels/lowering/lowered_weight.h"
#include "cortado/kernels/tensor_type.h"
#include "cortado/layers/deconvolution.h"

namespace cortado::lowering {

namespace {

float* second(const std::vector<float*>& pointers) { return pointers.size() > 1 ? pointers[1] : nullptr; }

// What all layers of these products have in common: the weight's format, the ReLU after them, memory.
class ProductsKernel : public Kernel {
 public:
  ProductsKernel(const ChainTail& tail, const Task& task, ConvolutionProducts products)
      : products_(std::move(products)),
        weight_(products_.weight, task.canonical_parameters),
        tail_(tail),
        outputs_(task.local_output(0).size()),
        output_type_(task.output_type(0)),
        weights_step_(any_wanted(task.parameter_gradients)) {}

  std::string name() const override { return products_.name; }
  BackwardReads backward_reads() const override {
    return {.inputs = weights_step_, .outputs = tail_.rectify};
  }
  bool overwrites_output_gradients() const override { return tail_.rectify; }
  ParameterFormat parameter_format(int index) const override {
    return index == 0 ? weight_.format() : ParameterFormat{};
  }
  Bytes scratch_bytes() const override {
    const size_t products = std::max({products_.gather->scratch_bytes(), products_.spread->scratch_bytes(),
                                      products_.correlate->scratch_bytes()});
    return {static_cast<int64_t>(weight_.scratch_bytes() + products)};
  }

 protected:
  Epilogue epilogue(const Arguments& a) const { return {second(a.parameters), tail_.rectify, tail_.slope}; }
  std::byte* rest(const Arguments& a) const { return a.scratch + weight_.scratch_bytes(); }
  const float* weight(const Arguments& a) const { return weight_.read(a.parameters[0], a.scratch); }

  void mask(const Arguments& a) const {
    if (!tail_.rectify) return;
    with_tensor_type(output_type_, [&]<typename E>() {
      mask_gradient(elements<E>(a.outputs[0]), tail_.slope, outputs_, elements<E>(a.output_gradients[0]));
    });
  }

  ConvolutionProducts products_;
  LoweredWeight weight_;
  ChainTail tail_;
  int64_t outputs_;  // elements
  ElementType output_type_;
  bool weights_step_;  // backward_weights runs, too
};

class GatherKernel : public ProductsKernel {
 public:
  GatherKernel(const ChainTail& tail, const Task& task, ConvolutionProducts products)
      : ProductsKernel(tail, task, std::move(products)),
        keeps_masked_(task.input_gradients[0] || products_.correlate->wants_masked()) {}

  void forward(const Arguments& a) override {
    products_.gather->run(first_input(a), weight(a), a.outputs[0], epilogue(a), rest(a));
  }

  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (!weights_step_ || a.input_gradients_first) mask(a);
    products_.spread->run(a.output_gradients[0], weight(a), a.input_gradients[0], {}, rest(a));
  }

  void backward_weights(const Arguments& a) override {
    if (!weights_step_) return;
    WeightProduct::Operands operands{first_input(a), a.output_gradients[0]};
    if (tail_.rectify && !a.input_gradients_first) {
      operands.rectified = a.outputs[0];
      operands.slope = tail_.slope;
      operands.masked = keeps_masked_ ? a.output_gradients[0] : nullptr;
    }
    weight_.write(a.parameter_gradients[0], a.scratch, [&](float* gradient) {
      products_.correlate->run(operands, gradient, second(a.parameter_gradients), rest(a));
    });
  }

 private:
  bool keeps_masked_;
};

// The convolution that maps the output to the input, run backward.
class SpreadKernel : public ProductsKernel {
 public:
  SpreadKernel(const ConvolutionProblem& problem, const ChainTail& tail, const Task& task,
               ConvolutionProducts products)
      : ProductsKernel(tail, task, std::move(products)), channels_(problem.groups * problem.image_channels) {}

  void forward(const Arguments& a) override {
    products_.spread->run(first_input(a), weight(a), a.outputs[0], epilogue(a), rest(a));
  }

  void backward(const Arguments& a) override {
    if (!a.input_gradients[0]) return;
    if (!weights_step_ || a.input_gradients_first) mask(a);
    products_.gather->run(a.output_gradients[0], weight(a), a.input_gradients[0], {}, rest(a));
  }

  void backward_weights(const Arguments& a) override {
    if (!weights_step_) return;
    if (!a.input_gradients_first) mask(a);
    if (float* bias = second(a.parameter_gradients))
      sum_rows(a.output_gradients[0], outputs_ / channels_, channels_, bias);
    if (!a.parameter_gradients[0]) return;
    weight_.write(a.parameter_gradients[0], a.scratch, [&](float* gradient) {
      products_.correlate->run({a.output_gradients[0], first_input(a)}, gradient, nullptr, rest(a));
    });
  }

 private:
  int64_t channels_;
};

}  // namespace

std::unique_ptr<Kernel> make_gather_kernel(const ChainTail& tail, const Task& task,
                                           ConvolutionProducts products) {
  return std::make_unique<GatherKernel>(tail, task, std::move(products));
}

KernelOffer make_convolution(const Task& task, const ConvolutionOptions& options,
                             const MakeProducts& make_products) {
  KernelOffer offer;
  const std::optional<ChainTail> tail = chain_tail(task, offer.refusal);
  if (!tail) return offer;
  auto problem = convolution_problem(options, task.inputs[0], task.input_boxes[0], task.outputs[0],
                                     task.output_boxes[0], offer.refusal);
  if (!problem) return offer;
  problem->image_type = task.input_type(0);
  problem->window_type = task.output_type(0);
  problem->window_parts = task.output_parts();
  problem->all_window_channels = task.output_blocks > 0 ? task.outputs[0][1] : 0;
  std::optional<ConvolutionProducts> products = make_products(*problem, offer.refusal);
  if (products) offer.kernel = make_gather_kernel(*tail, task, std::move(*products));
  return offer;
}

KernelOffer make_deconvolution(const Task& task, const ConvolutionOptions& options,
                               const MakeProducts& make_products) {
  KernelOffer offer;
  const std::optional<ChainTail> tail = chain_tail(task, offer.refusal);
  if (!tail) return offer;
  auto problem = convolution_problem(options, task.outputs[0], task.output_boxes[0], task.inputs[0],
                                     task.input_boxes[0], offer.refusal);
  if (!problem) return offer;
  problem->image_parts = task.output_parts();
  std::optional<ConvolutionProducts> products = make_products(*problem, offer.refusal);
  if (products) offer.kernel = std::make_unique<SpreadKernel>(*problem, *tail, task, std::move(*products));
  return offer;
}

}  // namespace cortado::lowering
