// Shapes of outputs and parameters, refusals and costs, against values worked out by hand from Caffe's rules.
#include <cmath>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/spp.h"

namespace cortado {
namespace {

using Shapes = std::vector<Shape>;

Shape output(const Layer& layer, const Shapes& inputs) { return layer.output_shapes(inputs, 1)[0]; }

Shapes parameter_shapes(const Layer& layer, const Shapes& inputs) {
  Shapes shapes;
  for (const ParameterSpec& spec : layer.parameters(inputs)) shapes.push_back(spec.shape);
  return shapes;
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Convolution, HasCaffesShapes) {
  Convolution alexnet({.num_output = 256, .group = 2, .kernel = {5}, .pad = {2}});
  EXPECT_EQ(output(alexnet, {{8, 96, 27, 27}}), (Shape{8, 256, 27, 27}));
  EXPECT_EQ(parameter_shapes(alexnet, {{8, 96, 27, 27}}), (Shapes{{256, 48, 5, 5}, {256}}));
  Convolution row({.num_output = 4, .bias_term = false, .kernel = {1, 7}, .stride = {1, 2}, .pad = {0, 3}});
  EXPECT_EQ(output(row, {{1, 3, 17, 17}}), (Shape{1, 4, 17, 9}));
  EXPECT_EQ(parameter_shapes(row, {{1, 3, 17, 17}}), (Shapes{{4, 3, 1, 7}}));
  Convolution dilated({.num_output = 2, .kernel = {3}, .dilation = {2}});
  EXPECT_EQ(output(dilated, {{1, 3, 9}}), (Shape{1, 2, 5}));
  EXPECT_EQ(output(dilated, {{1, 3, 9, 8, 7}}), (Shape{1, 2, 5, 4, 3}));
}

TEST(Convolution, CountsMultiplyAdds) {
  Convolution layer({.num_output = 64, .bias_term = false, .kernel = {3}, .pad = {1}});
  Shapes in{{2, 32, 10, 10}}, out{{2, 64, 10, 10}};
  EXPECT_EQ(layer.forward_flops(in, out).count, 2.0 * 2 * 64 * 100 * 32 * 9);
}

TEST(Convolution, RefusesWhatDoesNotFit) {
  Shapes in{{1, 6, 4, 4}};
  EXPECT_EQ(message_of([&] { output(Convolution({.num_output = 4, .group = 4, .kernel = {3}}), in); }),
            "group 4 does not divide the 6 input channels");
  EXPECT_EQ(message_of([&] { output(Convolution({.num_output = 4, .group = 3, .kernel = {3}}), in); }),
            "group 3 does not divide num_output 4");
  EXPECT_EQ(message_of([&] { output(Convolution({.num_output = 4}), in); }), "kernel size is not given");
  EXPECT_EQ(message_of([&] { output(Convolution({.num_output = 4, .kernel = {3}, .axis = 2}), in); }),
            "axis 2 is not supported: the channels must be on axis 1");
  EXPECT_NE(message_of([&] { output(Convolution({.num_output = 4, .kernel = {7}}), in); }), "no error");
  EXPECT_NE(message_of([&] { output(Convolution({.num_output = 4, .kernel = {3}}), {{1, 6}}); }), "no error");
}

TEST(Convolution, ReadsOnlyTheGroupsOfItsChannels) {
  Convolution layer({.num_output = 8, .group = 4, .kernel = {1}});
  Shapes in{{1, 12, 3, 3}};
  Box box = Box::whole(output(layer, in));
  box[1] = {3, 5};  // groups 1 and 2
  EXPECT_EQ(layer.input_box(in, 0, 0, box)[1], (Range{3, 9}));
}

TEST(Deconvolution, HasCaffesShapes) {
  Deconvolution layer({.num_output = 6, .group = 3, .kernel = {4}, .stride = {2}, .pad = {1}});
  EXPECT_EQ(output(layer, {{2, 9, 5, 7}}), (Shape{2, 6, 10, 14}));
  EXPECT_EQ(parameter_shapes(layer, {{2, 9, 5, 7}}), (Shapes{{9, 2, 4, 4}, {6}}));
}

TEST(Pooling, HasCaffesShapes) {
  EXPECT_EQ(output(Pooling({.kernel = {3}, .stride = {2}}), {{1, 64, 112, 112}}), (Shape{1, 64, 56, 56}));
  EXPECT_EQ(output(Pooling({.kernel = {3}, .stride = {2}, .rounding = Rounding::down}), {{1, 64, 112, 112}}),
            (Shape{1, 64, 55, 55}));
  EXPECT_EQ(output(Pooling({.global_pooling = true}), {{1, 64, 7, 9}}), (Shape{1, 64, 1, 1}));
  EXPECT_EQ(Pooling({.kernel = {2}}).output_shapes(Shapes{{1, 2, 4, 4}}, 2).size(), 2u);
}

// Caffe rounds (image + 2 pad - kernel) / stride up and, where any axis is padded, leaves out a last window
// that starts at the image's end or after it.
TEST(Pooling, CountsWindowsAsCaffe) {
  auto caffes = [](int64_t image, int64_t kernel, int64_t stride, int64_t pad, bool padded) {
    auto room = static_cast<float>(image + 2 * pad - kernel);
    int64_t count = static_cast<int>(std::ceil(room / static_cast<float>(stride))) + 1;
    if (padded && (count - 1) * stride >= image + pad) --count;
    return count;
  };
  for (int64_t kernel = 1; kernel <= 4; ++kernel) {
    for (int64_t stride = 1; stride <= 5; ++stride) {
      for (int64_t pad = 0; pad < kernel; ++pad) {
        Pooling pooling({.kernel = {kernel, 4}, .stride = {stride, 1}, .pad = {0, pad}});
        Pooling other({.kernel = {4, kernel}, .stride = {1, stride}, .pad = {0, pad}});
        for (int64_t image = 4; image < 20; ++image) {
          EXPECT_EQ(output(pooling, {{1, 1, image, 5}})[2], caffes(image, kernel, stride, 0, pad > 0));
          EXPECT_EQ(output(other, {{1, 1, 5, image}})[3], caffes(image, kernel, stride, pad, pad > 0));
        }
      }
    }
  }
  EXPECT_EQ(output(Pooling({.kernel = {1}, .stride = {2}}), {{1, 3, 8, 8}}), (Shape{1, 3, 5, 5}));
}

TEST(Pooling, RefusesToAverageAnEmptyWindow) {
  PoolingOptions average{.method = PoolingOptions::Method::average, .kernel = {1}, .stride = {2}};
  EXPECT_EQ(message_of([&] {
              output(Pooling(average), {{1, 3, 8, 7}});
            }),
            "the last of 5 windows (kernel 1, stride 2) starts at 8, outside an input of 8, where average "
            "pooling has no value; use round_mode: FLOOR, or max pooling");
  EXPECT_EQ(output(Pooling(average), {{1, 3, 7, 9}}), (Shape{1, 3, 4, 5}));
  average.stride = {3};  // the last window starts at 9 of 8: Caffe divides 0 by -1
  EXPECT_EQ(output(Pooling(average), {{1, 3, 8, 8}}), (Shape{1, 3, 4, 4}));
  average.method = PoolingOptions::Method::stochastic;
  EXPECT_NE(message_of([&] { output(Pooling(average), {{1, 3, 8, 8}}); }), "no error");
}

TEST(Pooling, RefusesWhatDoesNotFit) {
  Shapes in{{1, 6, 4, 4}};
  EXPECT_EQ(message_of([&] { output(Pooling({.kernel = {2}, .pad = {2}}), in); }),
            "pad 2 must be less than the kernel size 2");
  EXPECT_EQ(message_of([&] { output(Pooling({.kernel = {2}, .global_pooling = true}), in); }),
            "global_pooling excludes a kernel size; remove one of them");
  PoolingOptions stochastic{.method = PoolingOptions::Method::stochastic, .kernel = {3}, .pad = {1}};
  EXPECT_EQ(message_of([&] { output(Pooling(stochastic), in); }),
            "stochastic pooling has no padding, pad is 1; set it to 0");
  PoolingOptions average{.method = PoolingOptions::Method::average, .kernel = {3}};
  EXPECT_THROW(Pooling(average).output_shapes(in, 2), UserError);
}

TEST(Im2col, HasAChannelForEachElementOfAWindow) {
  Im2col layer({.kernel = {3, 2}, .stride = {2}, .pad = {1}, .dilation = {1, 2}});
  const Shapes in{{2, 5, 9, 8}};
  EXPECT_EQ(output(layer, in), (Shape{2, 30, 5, 4}));
  EXPECT_EQ(output(Im2col({.kernel = {3}}), {{2, 5, 9}}), (Shape{2, 15, 7}));
  Box box = Box::whole(output(layer, in));
  box[1] = {7, 13};  // channels 1 and 2
  box[2] = {1, 2};
  EXPECT_EQ(layer.input_box(in, 0, 0, box).text(), "[0,2)x[1,3)x[1,4)x[0,8)");
  EXPECT_EQ(message_of([&] { output(Im2col(Im2colOptions{}), in); }), "kernel size is not given");
  EXPECT_EQ(message_of([&] { output(Im2col({.kernel = {3}, .axis = 2}), in); }),
            "axis 2 is not supported: the channels must be on axis 1");
}

TEST(Spp, HasAFeatureForEachWindowOfEachLevel) {
  EXPECT_EQ(output(Spp({.pyramid_height = 1}), {{3, 5, 9, 7}}), (Shape{3, 5}));
  EXPECT_EQ(output(Spp({.pyramid_height = 3}), {{3, 5, 9, 7}}), (Shape{3, 5 * (1 + 4 + 16)}));
  EXPECT_EQ(output(Spp({.pyramid_height = 2}), {{3, 5, 9}}), (Shape{3, 5 * (1 + 2)}));
  EXPECT_EQ(output(Spp({.pyramid_height = 2}), {{3, 5, 4, 4, 6}}), (Shape{3, 5 * (1 + 8)}));
  const WindowAxis rows = Spp({.pyramid_height = 3}).window({1, 1, 9, 7}, 2)[0];  // 4 windows of 3 over 9
  EXPECT_EQ(rows, (WindowAxis{.kernel = 3, .stride = 3, .pad = 2}));
  EXPECT_EQ(message_of([&] {
              output(Spp({.pyramid_height = 4}), {{1, 2, 9, 9}});
            }),
            "level 3 of the pyramid has 8 windows along axis 2 of 1x2x9x9, some in padding alone; use "
            "pyramid_height 3");
  EXPECT_NE(message_of([&] { output(Spp({.pyramid_height = 2000000000}), {{1, 2, 9, 9}}); }), "no error");
}

TEST(Resampling, HasTheExtentsThatItsOptionsGive) {
  EXPECT_EQ(output(Resampling(UpsampleOptions{.scale = 3}), {{2, 5, 4, 6}}), (Shape{2, 5, 12, 18}));
  EXPECT_EQ(output(Resampling(UpsampleOptions{}), {{2, 5, 4}}), (Shape{2, 5, 8}));
  const auto interp = [](InterpOptions options, const Shapes& inputs) {
    return output(Resampling(options), inputs);
  };
  const Shapes in{{1, 3, 33, 17}};
  EXPECT_EQ(interp({.zoom_factor = 8}, in), (Shape{1, 3, 257, 129}));
  EXPECT_EQ(interp({.shrink_factor = 4}, in), (Shape{1, 3, 9, 5}));
  EXPECT_EQ(interp({.zoom_factor = 3, .shrink_factor = 4}, in), (Shape{1, 3, 25, 13}));
  EXPECT_EQ(interp({.height = 7, .width = 90}, in), (Shape{1, 3, 7, 90}));
  EXPECT_EQ(interp({.zoom_factor = 2, .pad_begin = -1, .pad_end = -2}, in), (Shape{1, 3, 59, 27}));
  EXPECT_EQ(interp({}, {in[0], {9, 9, 5, 6}}), (Shape{1, 3, 5, 6}));
}

TEST(Resampling, RefusesWhatDoesNotFit) {
  const auto message = [](InterpOptions options, const Shapes& inputs) {
    return message_of([&] { output(Resampling(options), inputs); });
  };
  const Shapes in{{1, 3, 9, 9}};
  const std::string one_rule =
      "give one of zoom_factor or shrink_factor, height and width, or a second input";
  EXPECT_EQ(message({}, in), one_rule);
  EXPECT_EQ(message({.height = 3, .width = 3, .zoom_factor = 2}, in), one_rule);
  EXPECT_EQ(message({.zoom_factor = 2}, {in[0], in[0]}), one_rule);
  EXPECT_EQ(message({.height = 3}, in), "height and width must be given together and be positive");
  EXPECT_EQ(message({.height = 3, .width = 3}, {{1, 3, 9}}),
            "height and width are for images of four axes, not for 1x3x9; use zoom_factor");
  EXPECT_EQ(message({.zoom_factor = 2, .pad_begin = 1}, in), "pad_beg 1 and pad_end 0 must not be positive");
  EXPECT_EQ(message({.zoom_factor = 2, .pad_begin = -4, .pad_end = -5}, in),
            "pad_beg -4 and pad_end -5 leave nothing of axis 2 of 1x3x9x9");
  EXPECT_NE(message_of([&] { output(Resampling(UpsampleOptions{}), {{2, 3}}); }), "no error");
}

TEST(Resampling, ReadsTheNeighboursOfItsPart) {
  Resampling nearest(UpsampleOptions{.scale = 2}), linear(UpsampleOptions{2, UpsampleOptions::Mode::linear});
  const Shapes in{{1, 1, 8}};
  Box box = Box::whole({1, 1, 16});
  box[2] = {3, 8};
  EXPECT_EQ(nearest.input_box(in, 0, 0, box)[2], (Range{1, 4}));
  EXPECT_EQ(linear.input_box(in, 0, 0, box)[2], (Range{1, 5}));  // 1.25 to 3.25
  box[2] = {0, 1};
  EXPECT_EQ(linear.input_box(in, 0, 0, box)[2], (Range{0, 1}));
  box[2] = {14, 16};
  EXPECT_EQ(linear.input_box(in, 0, 0, box)[2], (Range{6, 8}));  // 6.75 and the edge
}

TEST(Normalize, HasAScaleAndReadsWhatItSums) {
  const Shapes in{{2, 6, 4, 5}};
  Normalize sample(NormalizeOptions{}), positions({.across_spatial = false, .channel_shared = false});
  EXPECT_EQ(output(sample, in), in[0]);
  EXPECT_EQ(parameter_shapes(sample, in), Shapes{Shape{}});
  EXPECT_EQ(parameter_shapes(positions, in), Shapes{{6}});
  EXPECT_EQ(sample.cuts(in), Cuts::sample());
  EXPECT_EQ(positions.cuts(in), (Cuts{.n = true, .h = true, .w = true}));
  Box box = Box::whole(in[0]);
  box[0] = {1, 2}, box[1] = {2, 3}, box[2] = {0, 1};
  EXPECT_EQ(sample.input_box(in, 0, 0, box).text(), "[1,2)x[0,6)x[0,4)x[0,5)");
  EXPECT_EQ(positions.input_box(in, 0, 0, box).text(), "[1,2)x[0,6)x[0,1)x[0,5)");
  EXPECT_NE(message_of([&] { output(sample, {{4}}); }), "no error");
}

TEST(InnerProduct, HasCaffesShapes) {
  EXPECT_EQ(output(InnerProduct({.num_output = 10}), {{64, 50, 4, 4}}), (Shape{64, 10}));
  EXPECT_EQ(parameter_shapes(InnerProduct({.num_output = 10}), {{64, 50, 4, 4}}), (Shapes{{10, 800}, {10}}));
  EXPECT_EQ(parameter_shapes(InnerProduct({.num_output = 10, .transpose = true}), {{64, 50}}),
            (Shapes{{50, 10}, {10}}));
  EXPECT_EQ(output(InnerProduct({.num_output = 10, .axis = 2}), {{3, 5, 7}}), (Shape{3, 5, 10}));
  EXPECT_EQ(output(InnerProduct({.num_output = 10, .axis = -1}), {{3, 5, 7}}), (Shape{3, 5, 10}));
  EXPECT_THROW(output(InnerProduct({.num_output = 10, .axis = 3}), {{3, 5, 7}}), UserError);
}

TEST(BatchNorm, HasThreeParametersThatForwardWrites) {
  auto specs = BatchNorm(BatchNormOptions{}).parameters(Shapes{{2, 5, 3, 3}});
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].shape, (Shape{5}));
  EXPECT_EQ(specs[1].shape, (Shape{5}));
  EXPECT_EQ(specs[2].shape, (Shape{1}));
  for (const ParameterSpec& spec : specs) EXPECT_FALSE(spec.learnable);
  EXPECT_TRUE(BatchNormOptions{}.global_statistics(Phase::test));
  EXPECT_FALSE(BatchNormOptions{}.global_statistics(Phase::train));
  EXPECT_TRUE(BatchNormOptions{.use_global_stats = true}.global_statistics(Phase::train));
  EXPECT_TRUE(BatchNorm(BatchNormOptions{}).sums_statistics(Phase::train));
  EXPECT_FALSE(BatchNorm(BatchNormOptions{}).sums_statistics(Phase::test));
  EXPECT_FALSE(BatchNorm({.use_global_stats = true}).sums_statistics(Phase::train));
  EXPECT_TRUE(BatchNorm({.use_global_stats = false}).sums_statistics(Phase::test));
}

TEST(Scale, BroadcastsAlongTheOtherAxes) {
  Shapes in{{2, 3, 4, 5}};
  EXPECT_EQ(parameter_shapes(Scale({.bias_term = true}), in), (Shapes{{3}, {3}}));
  EXPECT_EQ(parameter_shapes(Scale({.broadcast = {.axis = 1, .num_axes = -1}}), in), (Shapes{{3, 4, 5}}));
  EXPECT_EQ(parameter_shapes(Scale({.broadcast = {.axis = -2, .num_axes = 2}}), in), (Shapes{{4, 5}}));
  EXPECT_EQ(parameter_shapes(Scale({.broadcast = {.num_axes = 0}}), in), (Shapes{Shape{}}));
  EXPECT_EQ(Scale(ScaleOptions{}).parameters(in)[0].filler.value, 1);
  EXPECT_EQ(Bias(BiasOptions{}).parameters(in)[0].filler.value, 0);
  EXPECT_TRUE(parameter_shapes(Scale(ScaleOptions{}), {{2, 3, 4, 5}, {3, 4}}).empty());
  EXPECT_THROW(output(Scale(ScaleOptions{}), {{2, 3, 4, 5}, {4}}), UserError);
  EXPECT_THROW(output(Bias({.broadcast = {.axis = 3, .num_axes = 2}}), in), UserError);
}

TEST(PRelu, HasOneSlopeAChannelOrOneForAll) {
  EXPECT_EQ(parameter_shapes(PRelu(PReluOptions{}), {{2, 3, 4}}), (Shapes{{3}}));
  EXPECT_EQ(parameter_shapes(PRelu({.channel_shared = true}), {{2, 3, 4}}), (Shapes{Shape{}}));
  EXPECT_EQ(PRelu(PReluOptions{}).parameters(Shapes{{2, 3}})[0].filler.value, 0.25);
}

TEST(Refusals, OfOptionsOutsideTheirRange) {
  Shapes in{{2, 3, 4, 4}};
  EXPECT_EQ(message_of([&] { output(Lrn({.local_size = 4}), in); }),
            "local_size is 4, must be odd and positive");
  EXPECT_EQ(message_of([&] { Dropout({.ratio = 1.5}); }), "dropout_ratio is 1.5, must be in [0, 1]");
  EXPECT_EQ(message_of([&] { Pointwise(LogOptions{.base = 1}); }),
            "base is 1, must be positive and not 1, or -1 for e");
  EXPECT_EQ(message_of([&] { Pointwise(ExpOptions{.base = -2}); }),
            "base is -2, must be positive, or -1 for e");
  EXPECT_THROW(output(Mvn(MvnOptions{}), {{2}}), UserError);
  EXPECT_THROW(output(BatchNorm({.eps = -1}), in), UserError);
  EXPECT_EQ(output(BatchNorm({.eps = 0}), in), in[0]);  // as in Caffe
}

}  // namespace
}  // namespace cortado
