// oneDNN's convolution, deconvolution and inner product against the reference.
#include "cortado/kernels/onednn/onednn.h"

#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"

#include "tests/kernels/check.h"
#include "tests/kernels/native_task.h"
#include "tests/kernels/random_products.h"
#include "tests/kernels/windows.h"

namespace cortado::check {
namespace {

using Make = KernelOffer (*)(const Task&);

void expect_equal(const Task& task, Make make) {
  KernelOffer offer = make(task);
  ASSERT_TRUE(offer.kernel) << offer.refusal << " for " << task.inputs[0].text();
  EXPECT_TRUE(matches_reference(task, *offer.kernel, 1e-5)) << offer.kernel->name() << task.inputs[0].text();
  EXPECT_TRUE(matches_reference(task, *offer.kernel, 0, DataKind::small_integers)) << offer.kernel->name();
}

// Tries with and without ReLU, bias, gradients of the input and of each parameter, and canonical weights.
template <typename Layer>
void expect_all_variants_equal(ConvolutionOptions options, const Shape& shape, Make make) {
  for (bool bias : {true, false}) {
    options.bias_term = bias;
    auto layer = std::make_shared<Layer>(options);
    expect_equal(chain_task({layer}, shape, Phase::test), make);
    Task task = chain_task({layer, relu()}, shape);
    expect_equal(task, make);
    task.canonical_parameters = true;
    expect_equal(task, make);
    task.input_gradients[0] = false;
    expect_equal(task, make);
    task = chain_task({layer}, shape);
    expect_equal(task, make);
    task.parameter_gradients[0] = false;
    expect_equal(task, make);
  }
}

TEST(OnednnConvolution, EqualsReference) {
  int64_t outputs = 5, others = 16;
  for (const Window& window : windows) {
    for (const Shape& shape : {Shape{2, 3, 9, 11}, Shape{1, 16, 8, 8}, Shape{2, 17, 7, 5}, Shape{2, 6, 13},
                               Shape{1, 4, 5, 6, 7}}) {
      expect_all_variants_equal<Convolution>(convolution(outputs, window), shape, make_onednn_convolution);
      std::swap(outputs, others);
    }
  }
}

TEST(OnednnConvolution, EqualsReferenceInGroups) {
  for (int64_t group : {2, 4, 16}) {
    expect_all_variants_equal<Convolution>(convolution(32, {}, group), {2, 16, 7, 6},
                                           make_onednn_convolution);
  }
}

// With AVX-512 oneDNN wants these weights in another order backward, and has but slow code between the two.
TEST(OnednnConvolution, EqualsReferenceWhereWeightsGoByThePlainOrder) {
  expect_all_variants_equal<Convolution>(convolution(96, {{5}, {1}, {0}, {1}}, 2), {2, 64, 8, 8},
                                         make_onednn_convolution);
}

TEST(OnednnConvolution, EqualsReferenceOnUnequalAxes) {
  expect_all_variants_equal<Convolution>(convolution(8, {{1, 7}, {2, 1}, {0, 3}, {1, 1}}), {2, 8, 9, 10},
                                         make_onednn_convolution);
}

TEST(OnednnConvolution, EqualsReferenceOnParts) {
  for (const Window& window : windows) {
    auto layer = std::make_shared<Convolution>(convolution(24, window));
    Task task = chain_task({layer, relu()}, {4, 16, 16, 17});
    const Shape output = task.outputs[0];
    task.output_boxes[0][0] = {1, 3};
    task.output_boxes[0][2] = {0, output[2] / 2};
    task.output_boxes[0][3] = {output[3] / 2, output[3]};
    task.input_boxes[0] = layer->input_box(task.inputs, 0, 0, task.output_boxes[0]);
    expect_equal(task, make_onednn_convolution);
  }
}

// Of small integers alone: a ReLU may pass or stop a sum of others that is all but zero.
TEST(OnednnConvolution, EqualsReferenceOnRandomParts) {
  int made = 0;
  for (int number = 0; number < 400 && !::testing::Test::HasFailure(); ++number) {
    check::Draw draw(static_cast<unsigned>(number));
    const Task part = random_part(draw, random_products(draw, number % 2 == 0));
    const bool images = part.layer().type() == "Convolution";
    const Make make = images ? make_onednn_convolution : make_onednn_deconvolution;
    SCOPED_TRACE(text_of_products(part, number));
    const KernelOffer offer = make(part);
    if (!offer.kernel) continue;
    ++made;
    EXPECT_TRUE(matches_reference(part, *offer.kernel, 0, DataKind::small_integers)) << offer.kernel->name();
  }
  EXPECT_GT(made, 200);
}

TEST(OnednnConvolution, NamesOrdersByTheirExtents) {
  auto format = [](int64_t outputs) {
    auto layer = std::make_shared<Convolution>(convolution(outputs, {}));
    return make_onednn_convolution(chain_task({layer}, {2, 16, 8, 8})).kernel->parameter_format(0);
  };
  EXPECT_EQ(format(16), format(16));
  EXPECT_NE(format(16), format(32));
}

TEST(OnednnConvolution, Refuses) {
  auto layer = std::make_shared<Convolution>(convolution(4, {}));
  auto leaky = std::make_shared<Pointwise>(ReluOptions{.negative_slope = 0.1});
  EXPECT_EQ(make_onednn_convolution(chain_task({layer, leaky}, {1, 4, 5, 5})).refusal,
            "a ReLU after it does not fuse");
  EXPECT_EQ(make_onednn_convolution(chain_task({relu()}, {1, 4, 5, 5})).refusal, "not a Convolution");
}

TEST(OnednnDeconvolution, EqualsReference) {
  for (const Window& window : windows) {
    for (const Shape& shape : {Shape{2, 3, 5, 6}, Shape{1, 16, 4, 4}, Shape{2, 6, 7}, Shape{1, 4, 3, 4, 5}}) {
      expect_all_variants_equal<Deconvolution>(convolution(8, window), shape, make_onednn_deconvolution);
    }
  }
  expect_all_variants_equal<Deconvolution>(convolution(8, {{4}, {2}, {1}, {1}}, 4), {2, 16, 5, 5},
                                           make_onednn_deconvolution);
}

TEST(OnednnInnerProduct, EqualsReference) {
  for (bool transpose : {false, true}) {
    for (bool bias : {false, true}) {
      for (const Shape& shape :
           {Shape{5, 7}, Shape{1, 64}, Shape{4, 16, 6, 6}, Shape{3, 5, 7}, Shape{2, 3, 2, 3, 4}}) {
        InnerProductOptions options;
        options.num_output = 17;
        options.bias_term = bias;
        options.transpose = transpose;
        auto layer = std::make_shared<InnerProduct>(options);
        for (Task task : {chain_task({layer}, shape), chain_task({layer, relu()}, shape)}) {
          expect_equal(task, make_onednn_inner_product);
          task.canonical_parameters = true;
          expect_equal(task, make_onednn_inner_product);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cortado::check
