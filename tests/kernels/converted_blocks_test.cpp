// Converted kernels of convolutions in blocks of samples, against the reference: random shapes, blocks and
// wanted gradients. And which tasks go in blocks.
#include "cortado/kernels/converted_blocks.h"

#include <fmt/format.h>

#include "cortado/kernels/converted.h"
#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/onednn/onednn.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/bf16_product.h"
#include "tests/kernels/draw.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

Task bf16_chain(const LayerPtr& layer, const Shape& shape, bool relu) {
  std::vector<LayerPtr> layers{layer};
  if (relu) layers.push_back(std::make_shared<Pointwise>(ReluOptions{}));
  Task task = chain_task(std::move(layers), shape);
  task.input_types = task.output_types = {ElementType::bf16};
  return task;
}

// Its first samples.
Task samples_of(const Task& task, int64_t samples) {
  Task block = task;
  for (Box* box : {&block.domain_box, &block.input_boxes[0], &block.output_boxes[0]})
    (*box)[0].end = (*box)[0].begin + samples;
  return block;
}

// oneDNN's, or ours where it refuses.
KernelOffer make_onednn_products(const Task& task) {
  const bool convolves = task.layer().type() == "Convolution";
  KernelOffer offer = convolves ? make_onednn_convolution(task) : make_onednn_deconvolution(task);
  return offer.kernel ? std::move(offer) : make_implicit_gemm(task);
}

using Make = KernelOffer (*)(const Task&);

std::unique_ptr<Kernel> in_blocks(const Task& task, int64_t samples, Make make) {
  const Task block = samples_of(task, samples);
  const auto converted = [&](const Task& of) { return make_converted(make(in_f32(of)).kernel, of); };
  return make_converted_in_blocks(converted(task), converted(block), task, block);
}

TEST(ConvertedInBlocks, EqualReference) {
  for (unsigned number = 0; number < 60 && !::testing::Test::HasFailure(); ++number) {
    Draw draw(number);
    const int64_t samples = draw(1, 3), blocks = draw(2, 4);
    Shape shape{samples * blocks, draw(1, 20), draw(3, 12), draw(3, 12)};
    const Window& window = windows[static_cast<size_t>(draw(0, 2))];
    const ConvolutionOptions options = convolution(draw(1, 20), window, 1, draw.chance(60));
    LayerPtr layer = std::make_shared<Convolution>(options);
    if (draw.chance(30)) layer = std::make_shared<Deconvolution>(options);
    Task task = bf16_chain(layer, shape, draw.chance(40));
    if (draw.chance(15)) task.input_gradients[0] = false;
    if (draw.chance(15)) task.parameter_gradients[0] = false;
    const auto kernel = in_blocks(task, samples, draw.chance(50) ? make_implicit_gemm : make_onednn_products);
    SCOPED_TRACE(fmt::format("case {}: {} to {}, {} blocks, {}", number, shape.text(), task.outputs[0].text(),
                             blocks, kernel->name()));
    EXPECT_TRUE(matches_in_bf16(task, *kernel, 0, DataKind::small_integers, true));
    EXPECT_TRUE(matches_in_bf16(task, *kernel, 2e-5, DataKind::random, true));
  }
}

TEST(ConvertedInBlocks, EqualReferenceWithWeightsOfAllSamplesAtOnce) {
  const auto layer = std::make_shared<Convolution>(convolution(64, windows[1]));
  const Task task = bf16_chain(layer, {4, 64, 5, 5}, true);
  const auto kernel = in_blocks(task, 2, make_implicit_gemm);
  EXPECT_TRUE(matches_in_bf16(task, *kernel, 0, DataKind::small_integers, true));
}

TEST(ConvertedInBlocks, AreForLargeConvolutions) {
  const auto samples = [](const LayerPtr& layer, const Shape& shape) {
    const auto block = block_of_samples(bf16_chain(layer, shape, false));
    return block ? block->output_boxes[0][0].size() : 0;
  };
  const auto pointwise = [](int64_t outputs) {
    return std::make_shared<Convolution>(convolution(outputs, windows[1]));
  };
  EXPECT_EQ(samples(pointwise(64), {12, 64, 56, 56}), 2);    // 1.5 MiB of copies each
  EXPECT_EQ(samples(pointwise(64), {16, 64, 112, 112}), 1);  // 6.1 MiB
  EXPECT_EQ(samples(pointwise(64), {7, 64, 28, 28}), 0);     // 2.7 MiB in all
  EXPECT_EQ(samples(pointwise(64), {1, 64, 224, 224}), 0);
  EXPECT_EQ(samples(pointwise(2048), {16, 1024, 7, 7}), 0);  // weights of 8 MiB
  EXPECT_EQ(
      samples(std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 16}), {16, 64, 112, 112}), 0);
}

}  // namespace
}  // namespace cortado::check
