// Kernels of f32 tensors on tensors in bf16, which they convert: their results, and the memory of the copies.
#include "cortado/kernels/converted.h"

#include "cortado/base/bf16.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/make_layer.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

Task all_bf16(Task task) {
  task.input_types.assign(task.inputs.size(), ElementType::bf16);
  task.output_types.assign(task.outputs.size(), ElementType::bf16);
  return task;
}

std::unique_ptr<Kernel> f32_kernel(const Task& task, const char* kernels) {
  return select_kernel(in_f32(task), kernels).kernel;
}

std::vector<LayerPtr> layers_of_products() {
  return {layer<Convolution>(convolution(16, {})), layer<Deconvolution>(convolution(16, {})),
          layer<InnerProduct>(InnerProductOptions{.num_output = 16})};
}

TEST(Converted, ProductsEqualReference) {
  for (const LayerPtr& product : layers_of_products()) {
    for (const std::vector<LayerPtr>& layers : {std::vector{product}, std::vector{product, relu()}}) {
      const Task task = all_bf16(chain_task(layers, {2, 16, 9, 8}));
      for (const char* kernels : {"", "implicit-gemm", "onednn", "reference"}) {
        SCOPED_TRACE(std::string(product->type()) + " by " + kernels);
        const auto converted = make_converted(f32_kernel(task, kernels), task);
        EXPECT_TRUE(matches_in_bf16(task, *converted, 0, DataKind::small_integers));
        EXPECT_TRUE(matches_in_bf16(task, *converted, 1e-5, DataKind::random, true));
      }
    }
  }
}

// The gradient of each element is the input after it; that of the last one, the first.
class NextInput : public Kernel {
 public:
  std::string name() const override { return "next input"; }
  void forward(const Arguments&) override {}
  void backward(const Arguments& a) override {
    for (int64_t i = 0; i < count; ++i) a.input_gradients[0][i] = a.inputs[0][(i + 1) % count];
  }
  static constexpr int64_t count = 6;
};

TEST(Converted, GradientsLeaveInputsThatAreReadBesideThemAlone) {
  const Task task = all_bf16(chain_task({relu()}, {2, 3}));
  const auto kernel = make_converted(std::make_unique<NextInput>(), task);
  std::vector<bf16> input, gradient(NextInput::count), output(NextInput::count);
  for (int i = 0; i < NextInput::count; ++i) input.push_back(to_bf16(static_cast<float>(i)));
  std::vector<std::byte> scratch(static_cast<size_t>(kernel->scratch_bytes().count));
  float* const read = reinterpret_cast<float*>(output.data());
  kernel->backward({.inputs = {reinterpret_cast<const float*>(input.data())},
                    .outputs = {read},
                    .output_gradients = {read},
                    .input_gradients = {reinterpret_cast<float*>(gradient.data())},
                    .scratch = scratch.data()});
  for (int i = 0; i < NextInput::count; ++i)
    EXPECT_EQ(to_float(gradient[static_cast<size_t>(i)]), static_cast<float>((i + 1) % NextInput::count));
}

int64_t copied(const Shape& shape) { return (shape.size() * int64_t{sizeof(float)} + 63) / 64 * 64; }

TEST(Converted, CopiesOfGradientsTakeTheMemoryOfTensorsThatTheirPassDoesNotRead) {
  for (const LayerPtr& product : layers_of_products()) {
    const Task alone = all_bf16(chain_task({product}, {2, 16, 9, 8}));
    const Task rectified = all_bf16(chain_task({product, relu()}, {2, 16, 9, 8}));
    for (const Task& task : {alone, rectified}) {
      auto kernel = f32_kernel(task, "implicit-gemm");
      const int64_t own = kernel->scratch_bytes().count;
      const int64_t outputs = task.layers.size() > 1 ? 2 : 1;  // the ReLU masks by what it has put out
      EXPECT_EQ(make_converted(std::move(kernel), task)->scratch_bytes().count,
                (own + 63) / 64 * 64 + copied(task.inputs[0]) + outputs * copied(task.outputs[0]));
    }
  }
}

}  // namespace
}  // namespace cortado::check
