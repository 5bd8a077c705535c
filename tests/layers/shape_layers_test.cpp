// Shapes of the layers that move or regroup elements, by Caffe's rules, and what they refuse.
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/split.h"
#include "cortado/layers/tile.h"

namespace cortado {
namespace {

using Shapes = std::vector<Shape>;

Shape only_shape(const Layer& layer, const Shapes& inputs) {
  Shapes outputs = layer.output_shapes(inputs, 1);
  EXPECT_EQ(outputs.size(), 1u);
  return outputs.at(0);
}

// The message of the UserError that the layer throws for these inputs.
std::string refusal(const Layer& layer, const Shapes& inputs, int outputs = 1) {
  try {
    layer.output_shapes(inputs, outputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConcatShape, AddsTheExtentsOfOneAxis) {
  EXPECT_EQ(only_shape(Concat({.axis = 1}), {{2, 3, 4, 5}, {2, 1, 4, 5}, {2, 6, 4, 5}}),
            (Shape{2, 10, 4, 5}));
  EXPECT_EQ(only_shape(Concat({.axis = -4}), {{2, 3, 4, 5}, {1, 3, 4, 5}}), (Shape{3, 3, 4, 5}));
  EXPECT_EQ(refusal(Concat({.axis = 1}), {{2, 3, 4, 5}, {2, 3, 4, 6}}),
            "cannot join 2x3x4x5 and 2x3x4x6 along axis 1: all other extents must be equal");
  EXPECT_EQ(refusal(Concat({.axis = 1}), {{2, 3, 4}, {2, 3}}),
            "cannot join 2x3x4 and 2x3 along axis 1: all other extents must be equal");
}

TEST(SliceShape, CutsAtPointsOrInEqualParts) {
  EXPECT_EQ(Slice({.axis = 1}).output_shapes(Shapes{{2, 6, 4}}, 3), Shapes(3, Shape{2, 2, 4}));
  EXPECT_EQ(Slice({.axis = -2, .slice_points = {1, 3}}).output_shapes(Shapes{{2, 6, 4}}, 3),
            (Shapes{{2, 1, 4}, {2, 2, 4}, {2, 3, 4}}));
  EXPECT_EQ(refusal(Slice({.axis = 1}), {{2, 6, 4}}, 4),
            "cannot slice axis 1 of 2x6x4 into 4 equal parts: give slice_point");
  EXPECT_EQ(refusal(Slice({.axis = 1, .slice_points = {2}}), {{2, 6, 4}}, 3),
            "3 outputs need 2 slice points, has 1");
  EXPECT_EQ(refusal(Slice({.axis = 1, .slice_points = {3, 3}}), {{2, 6, 4}}, 3),
            "slice points must rise between 0 and the extent 6 of axis 1: 3 follows 3");
  EXPECT_EQ(refusal(Slice({.axis = 1, .slice_points = {6}}), {{2, 6, 4}}, 2),
            "slice points must rise between 0 and the extent 6 of axis 1: 6 follows 6");
}

TEST(FlattenShape, JoinsARangeOfAxes) {
  EXPECT_EQ(only_shape(Flatten(FlattenOptions{}), {{2, 3, 4, 5}}), (Shape{2, 60}));
  EXPECT_EQ(only_shape(Flatten({.axis = 2}), {{2, 3, 4, 5}}), (Shape{2, 3, 20}));
  EXPECT_EQ(only_shape(Flatten({.axis = -3, .end_axis = -2}), {{2, 3, 4, 5}}), (Shape{2, 12, 5}));
  EXPECT_EQ(only_shape(Flatten({.axis = 0}), {{2, 3}}), (Shape{6}));
  EXPECT_EQ(refusal(Flatten({.axis = 2, .end_axis = 1}), {{2, 3, 4, 5}}),
            "end_axis 1 lies before axis 2 in a tensor of shape 2x3x4x5");
}

TEST(ReshapeShape, CopiesAndInfersExtents) {
  Shapes input{{2, 8, 4, 5}};
  EXPECT_EQ(only_shape(Reshape({.shape = {0, -1}}), input), (Shape{2, 160}));
  EXPECT_EQ(only_shape(Reshape({.shape = {0, 4, -1, 5}}), input), (Shape{2, 4, 8, 5}));
  EXPECT_EQ(only_shape(Reshape({.shape = {-1}, .axis = 2}), input), (Shape{2, 8, 20}));
  EXPECT_EQ(only_shape(Reshape({.shape = {2, 4}, .axis = 1, .num_axes = 1}), input), (Shape{2, 2, 4, 4, 5}));
  EXPECT_EQ(only_shape(Reshape({.shape = {1}, .axis = -1, .num_axes = 0}), input), (Shape{2, 8, 4, 5, 1}));
  EXPECT_EQ(only_shape(Reshape({.shape = {1}, .axis = 0, .num_axes = 0}), input), (Shape{1, 2, 8, 4, 5}));
  EXPECT_EQ(only_shape(Reshape(ReshapeOptions{}), {{1, 1}}), Shape{});
}

TEST(ReshapeShape, RefusesWhatCannotBe) {
  Shapes input{{2, 8, 4, 5}};
  EXPECT_EQ(refusal(Reshape({.shape = {3, -1}}), input),
            "cannot reshape 2x8x4x5 (320 elements) to 3x106 (318 elements)");
  EXPECT_EQ(refusal(Reshape({.shape = {1, 1, 1, 1, 0}}), input),
            "dim 0 copies axis 4, which a tensor of shape 2x8x4x5 does not have");
  EXPECT_EQ(refusal(Reshape({.shape = {-1}, .axis = 3, .num_axes = 2}), input),
            "axis 3 and num_axes 2 lie outside a tensor of shape 2x8x4x5");
  EXPECT_THROW(Reshape({.shape = {-1, -1}}), UserError);
  EXPECT_THROW(Reshape({.shape = {-2}}), UserError);
}

TEST(CropShape, TakesExtentsOfTheReferenceFromAnAxisOn) {
  Shapes inputs{{2, 3, 10, 12}, {7, 7, 4, 5}};
  EXPECT_EQ(only_shape(Crop(CropOptions{}), inputs), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(only_shape(Crop({.axis = -1, .offset = {7}}), inputs), (Shape{2, 3, 10, 5}));
  EXPECT_EQ(Crop({.axis = 2, .offset = {6, 7}}).offsets(inputs[0]), (std::vector<int64_t>{0, 0, 6, 7}));
  EXPECT_EQ(Crop({.axis = 2, .offset = {3}}).offsets(inputs[0]), (std::vector<int64_t>{0, 0, 3, 3}));
  EXPECT_EQ(refusal(Crop({.axis = 2, .offset = {7, 7}}), inputs),
            "axis 2: offset 7 and extent 4 exceed the input 2x3x10x12");
  EXPECT_EQ(refusal(Crop({.axis = 1, .offset = {7, 7}}), inputs),
            "needs one offset, or one for each of the 3 axes from axis 1 on, has 2");
}

TEST(ReductionShape, KeepsTheLeadingAxes) {
  EXPECT_EQ(only_shape(Reduction(ReductionOptions{}), {{2, 3, 4}}), Shape{});
  EXPECT_EQ(only_shape(Reduction({.axis = -1}), {{2, 3, 4}}), (Shape{2, 3}));
}

TEST(ArgMaxShape, DependsOnAxisAndValues) {
  EXPECT_EQ(only_shape(ArgMax(ArgMaxOptions{}), {{2, 6}}), (Shape{2, 1, 1}));
  EXPECT_EQ(only_shape(ArgMax({.out_max_val = true, .top_k = 5}), {{2, 6, 4, 4}}), (Shape{2, 2, 5, 1}));
  EXPECT_EQ(only_shape(ArgMax({.top_k = 3, .axis = -3}), {{2, 6, 4, 4}}), (Shape{2, 3, 4, 4}));
  EXPECT_EQ(refusal(ArgMax({.top_k = 7, .axis = 1}), {{2, 6, 4, 4}}),
            "top_k 7 is more than the 6 elements to choose from in 2x6x4x4");
  EXPECT_THROW(ArgMax({.top_k = 0}), UserError);
}

TEST(TileShape, MultipliesAnExtent) {
  EXPECT_EQ(only_shape(Tile({.axis = -1, .tiles = 3}), {{2, 3, 4}}), (Shape{2, 3, 12}));
  EXPECT_THROW(Tile({.tiles = 0}), UserError);
}

TEST(ShuffleChannelShape, NeedsEqualGroups) {
  EXPECT_EQ(only_shape(ShuffleChannel({.group = 3}), {{2, 6, 4}}), (Shape{2, 6, 4}));
  EXPECT_EQ(refusal(ShuffleChannel({.group = 4}), {{2, 6, 4}}), "group 4 does not divide the 6 channels");
}

TEST(PermuteShape, HasTheInputsExtentsInItsOrder) {
  EXPECT_EQ(only_shape(Permute({.order = {0, 2, 3, 1}}), {{2, 3, 4, 5}}), (Shape{2, 4, 5, 3}));
  EXPECT_EQ(only_shape(Permute({.order = {2}}), {{2, 3, 4, 5}}), (Shape{4, 2, 3, 5}));
  EXPECT_EQ(only_shape(Permute(PermuteOptions{}), {{2, 3}}), (Shape{2, 3}));
  EXPECT_EQ(refusal(Permute({.order = {0, 3}}), {{2, 3, 4}}),
            "order has axis 3, but an input of shape 2x3x4 has 3 axes");
  EXPECT_THROW(Permute({.order = {0, 1, 0}}), UserError);
  Box box = Box::whole({2, 4, 5, 3});
  box[1] = {1, 2};
  EXPECT_EQ(Permute({.order = {0, 2, 3, 1}}).input_box(Shapes{{2, 3, 4, 5}}, 0, 0, box).text(),
            "[0,2)x[0,3)x[1,2)x[0,5)");
}

TEST(AxpyShape, NeedsAFactorForEachChannelOfEachSample) {
  EXPECT_EQ(only_shape(Axpy(), {{2, 3}, {2, 3, 4, 5}, {2, 3, 4, 5}}), (Shape{2, 3, 4, 5}));
  EXPECT_EQ(only_shape(Axpy(), {{2, 3, 1, 1}, {2, 3, 4}, {2, 3, 4}}), (Shape{2, 3, 4}));
  EXPECT_EQ(refusal(Axpy(), {{2, 3, 1, 2}, {2, 3, 4}, {2, 3, 4}}),
            "needs one factor for each sample and channel of 2x3x4, but input 1 has shape 2x3x1x2");
  EXPECT_EQ(refusal(Axpy(), {{2, 3}, {2, 3, 4}, {2, 3, 5}}),
            "inputs 2 and 3 must have one shape, have 2x3x4 and 2x3x5");
}

TEST(BatchReindexShape, HasASampleForEachIndex) {
  EXPECT_EQ(only_shape(BatchReindex(), {{4, 3, 2}, {6}}), (Shape{6, 3, 2}));
  EXPECT_EQ(refusal(BatchReindex(), {{4, 3, 2}, {6, 1}}),
            "the indices must have one axis, input 2 has shape 6x1");
}

TEST(FilterShape, HasTheSamplesThatPass) {
  const Filter filter({.samples = 3});
  EXPECT_EQ(filter.output_shapes(Shapes{{4, 3, 2}, {4}, {4, 1, 1}}, 2), (Shapes{{3, 3, 2}, {3}}));
  EXPECT_EQ(refusal(filter, {{4, 3}, {4, 2}}),
            "the selector, the last input, must have one value a sample, has shape 4x2");
  EXPECT_EQ(refusal(filter, {{5, 3}, {4}}),
            "an input of shape 5x3 has not the 4 samples that the selector has");
  EXPECT_EQ(refusal(filter, {{2, 3}, {2}}),
            "filter_param.samples is 3, but a batch has 2 samples; use at most that many");
  EXPECT_EQ(refusal(filter, {{4, 3}, {4}}, 2), "needs 1 outputs, has 2");
  EXPECT_EQ(filter.cuts(Shapes{{4, 3, 2}, {4}}), (Cuts{.n = true, .c = true, .w = true}));
  EXPECT_EQ(filter.cuts(Shapes{{4, 3, 2}, {4}, {4}}), Cuts{});
}

std::vector<Shape> parameter_shapes(const Recurrent& layer, const Shapes& inputs) {
  std::vector<Shape> shapes;
  for (const ParameterSpec& spec : layer.parameters(inputs)) shapes.push_back(spec.shape);
  return shapes;
}

// The blobs of Caffe's layers, in its order; Caffe's TestSetUp and TestSetUpWithStaticInput.
TEST(RecurrentShape, HasCaffesParameters) {
  const Recurrent lstm({.num_output = 7}), rnn({.kind = RecurrentOptions::Kind::rnn, .num_output = 7});
  const Shapes plain{{3, 8, 3, 2}, {3, 8}}, with_static{{3, 8, 3, 2}, {3, 8}, {8, 5}};
  EXPECT_EQ(only_shape(lstm, plain), (Shape{3, 8, 7}));
  EXPECT_EQ(only_shape(rnn, with_static), (Shape{3, 8, 7}));
  EXPECT_EQ(parameter_shapes(lstm, plain), (Shapes{{28, 6}, {28}, {28, 7}}));
  EXPECT_EQ(parameter_shapes(lstm, with_static), (Shapes{{28, 6}, {28}, {28, 5}, {28, 7}}));
  EXPECT_EQ(parameter_shapes(rnn, plain), (Shapes{{7, 6}, {7}, {7, 7}, {7, 7}, {7}}));
  EXPECT_EQ(parameter_shapes(rnn, with_static), (Shapes{{7, 6}, {7}, {7, 5}, {7, 7}, {7, 7}, {7}}));
}

TEST(RecurrentShape, ExposesItsStates) {
  const Recurrent lstm({.num_output = 7, .expose_hidden = true});
  const Shapes inputs{{3, 8, 2}, {3, 8}, {1, 8, 7}, {1, 8, 7}};
  EXPECT_EQ(lstm.output_shapes(inputs, 3), (Shapes{{3, 8, 7}, {1, 8, 7}, {1, 8, 7}}));
  EXPECT_FALSE(lstm.has_static(4));
  EXPECT_TRUE(lstm.has_static(5));
  EXPECT_EQ(refusal(lstm, inputs), "needs 3 outputs, has 1");
  EXPECT_EQ(refusal(lstm, {{3, 8, 2}, {3, 8}}, 3), "needs 4 to 5 inputs, has 2");
  EXPECT_EQ(refusal(lstm, {{3, 8, 2}, {3, 8}, {1, 8, 7}, {1, 7, 7}}, 3),
            "a state must have shape 1x8x7, has 1x7x7");
}

TEST(RecurrentShape, WrongInputsAreRefused) {
  const Recurrent rnn({.kind = RecurrentOptions::Kind::rnn, .num_output = 7});
  EXPECT_EQ(refusal(rnn, {{3, 8}, {3, 8}}),
            "input 1 must be of shape time steps x sequences x features, is 3x8; reshape it");
  EXPECT_EQ(refusal(rnn, {{3, 8, 2}, {8, 3}}),
            "the sequence indicators, input 2, must have shape 3x8, has 8x3");
  EXPECT_EQ(refusal(rnn, {{3, 8, 2}, {3, 8}, {3, 2}}),
            "the static input, of shape 3x2, must have a row for each of the 8 sequences");
  EXPECT_EQ(rnn.cuts(Shapes{{3, 8, 2}, {3, 8}}), (Cuts{.c = true}));
  EXPECT_THROW(Recurrent({}), UserError);
}

TEST(ParameterShape, IsThatOfItsOptions) {
  const Parameter layer({.shape = {3, 4}});
  EXPECT_EQ(only_shape(layer, {}), (Shape{3, 4}));
  EXPECT_EQ(layer.parameters({}).at(0).shape, (Shape{3, 4}));
  EXPECT_EQ(refusal(layer, {{2}}), "needs 0 inputs, has 1");
}

TEST(EmbedShape, AppendsAnAxis) {
  Embed embed({.num_output = 7, .input_dim = 5});
  EXPECT_EQ(only_shape(embed, {{2, 3}}), (Shape{2, 3, 7}));
  std::vector<ParameterSpec> parameters = embed.parameters(Shapes{{2, 3}});
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].shape, (Shape{5, 7}));
  EXPECT_EQ(parameters[1].shape, (Shape{7}));
  EXPECT_THROW(Embed({.num_output = 7}), UserError);
}

TEST(SplitAndSilence, HaveManyOutputsAndNone) {
  EXPECT_EQ(Split().output_shapes(Shapes{{2, 3}}, 3), Shapes(3, Shape{2, 3}));
  EXPECT_TRUE(Silence().output_shapes(Shapes{{2, 3}, {4}}, 0).empty());
  EXPECT_EQ(refusal(Silence(), {{2, 3}}, 1), "needs 0 outputs, has 1");
}

TEST(Cutting, ReadsOnlyTheBoxThatIsAsked) {
  Shapes parts{{2, 3, 4, 5}, {2, 4, 4, 5}};
  Box box = Box::whole({2, 7, 4, 5});
  box[1] = {1, 5};
  EXPECT_EQ(Concat(ConcatOptions{}).input_box(parts, 0, 0, box).text(), "[0,2)x[1,3)x[0,4)x[0,5)");
  EXPECT_EQ(Concat(ConcatOptions{}).input_box(parts, 1, 0, box).text(), "[0,2)x[0,2)x[0,4)x[0,5)");
  box[1] = {4, 5};
  EXPECT_TRUE(Concat(ConcatOptions{}).input_box(parts, 0, 0, box).empty());

  Shapes crop{{2, 3, 10, 12}, {2, 3, 4, 5}};
  Box rows = Box::whole({2, 3, 4, 5});
  rows[2] = {1, 2};
  EXPECT_EQ(Crop({.offset = {6, 7}}).input_box(crop, 0, 0, rows).text(), "[0,2)x[0,3)x[7,8)x[7,12)");

  EXPECT_EQ(Flatten(FlattenOptions{}).cuts(Shapes{{2, 3, 4}}), Cuts::sample());
  EXPECT_EQ(Flatten({.axis = 0}).cuts(Shapes{{2, 3, 4}}), Cuts{});
  EXPECT_EQ(Slice({.axis = 1}).cuts(Shapes{{2, 4, 5, 6}}), (Cuts{.n = true, .h = true, .w = true}));
}

}  // namespace
}  // namespace cortado
