// Layers that move, join or reduce elements: values worked out by hand, gradients against finite differences,
// input boxes against what changes the output.
#include <cmath>
#include <hdf5.h>

#include "cortado/base/error.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hdf5_output.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/split.h"
#include "cortado/layers/tile.h"

#include "tests/kernels/layer_run.h"
#include "tests/kernels/make_layer.h"

namespace cortado {
namespace {

using check::CheckOptions;
using check::gradients_match_differences;
using check::input_boxes_hold;
using check::layer;
using check::LayerRun;
using check::same;

Task task_of(LayerPtr layer, std::vector<Shape> inputs, int outputs = 1) {
  return whole_task(std::move(layer), Phase::train, inputs, outputs);
}

// A tensor in memory whose elements are their own row-major spoken numbers.
std::vector<double> numbered(const Shape& shape) {
  std::vector<double> values(shape.size());
  Place place = tensor_place(Box::whole(shape));
  for_each_index(Box::whole(shape), [&](const Index& index) {
    values[place(index)] = static_cast<double>(spoken_number(shape, index));
  });
  return values;
}

TEST(Reshape, KeepsSpokenOrder) {
  std::vector<std::pair<Shape, LayerPtr>> cases{
      {{2, 3, 2, 4}, layer<Flatten>(FlattenOptions{})},
      {{2, 3, 2, 2, 4}, layer<Flatten>(FlattenOptions{})},
      {{2, 3, 2, 2, 4}, layer<Flatten>(FlattenOptions{.axis = 2})},
      {{2, 3, 4}, layer<Flatten>(FlattenOptions{.axis = 0, .end_axis = 1})},
      {{2, 24}, layer<Reshape>(ReshapeOptions{.shape = {0, 2, 3, 4}})},
      {{2, 6, 4}, layer<Reshape>(ReshapeOptions{.shape = {0, 3, 2, 2, 2}})},
  };
  for (const auto& [shape, reshape] : cases) {
    LayerRun run(reshape, {shape}, 1);
    Shape output = reshape->output_shapes({&shape, 1}, 1)[0];
    run.forward({numbered(shape)});
    EXPECT_TRUE(same(run.output(), numbered(output))) << shape.text() << " to " << output.text();
    run.backward(numbered(output));
    EXPECT_TRUE(same(run.gradient(), numbered(shape))) << shape.text() << " from " << output.text();
  }
}

TEST(Flatten, IsAPermutationOfMemory) {
  LayerRun run(layer<Flatten>(FlattenOptions{}), {{1, 2, 3}}, 1);
  run.forward({{0, 10, 1, 11, 2, 12}});  // position by position, channels 0 and 1
  EXPECT_TRUE(same(run.output(), {0, 1, 2, 10, 11, 12}));
}

TEST(Concat, JoinsChannelsPositionByPosition) {
  LayerRun run(layer<Concat>(ConcatOptions{}), {{1, 1, 2}, {1, 2, 2}}, 1);
  run.forward({{1, 2}, {10, 20, 11, 21}});
  EXPECT_TRUE(same(run.output(), {1, 10, 20, 2, 11, 21}));
  run.backward({1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(same(run.gradient(0), {1, 4}));
  EXPECT_TRUE(same(run.gradient(1), {2, 3, 5, 6}));
}

TEST(Slice, IsTheReverseOfConcat) {
  LayerRun run(layer<Slice>(SliceOptions{.slice_points = {1}}), {{1, 3, 2}}, 2);
  run.forward({{1, 10, 20, 2, 11, 21}});
  EXPECT_TRUE(same(run.output(0), {1, 2}));
  EXPECT_TRUE(same(run.output(1), {10, 20, 11, 21}));
}

TEST(Split, SumsItsGradients) {
  EXPECT_TRUE(gradients_match_differences(task_of(layer<Split>(), {{2, 3}}, 3)));
}

TEST(Eltwise, ComputesEachOperation) {
  std::vector<std::vector<double>> inputs{{1, -2, 3}, {4, 5, 6}, {-1, 2, 0.5}};
  std::vector<Shape> shapes(3, Shape{3});
  LayerRun sum(layer<Eltwise>(EltwiseOptions{.coeff = {1, -1, 2}}), shapes, 1);
  sum.forward(inputs);
  EXPECT_TRUE(same(sum.output(), {-5, -3, -2}));
  LayerRun product(layer<Eltwise>(EltwiseOptions{.operation = EltwiseOptions::Operation::prod}), shapes, 1);
  product.forward(inputs);
  EXPECT_TRUE(same(product.output(), {-4, -20, 9}));
  EXPECT_THROW(Eltwise({.operation = EltwiseOptions::Operation::prod, .coeff = {1}}), UserError);
  EXPECT_NO_THROW(Eltwise({.operation = EltwiseOptions::Operation::max, .coeff = {1}}));  // passed over
}

TEST(Eltwise, SendsTheGradientOfTiesWhereCaffeDoes) {
  LayerRun run(layer<Eltwise>(EltwiseOptions{.operation = EltwiseOptions::Operation::max}), {{4}, {4}, {4}},
               1);
  run.forward({{2, 3, 1, 1}, {2, 1, 3, 1}, {2, 3, 3, 2}});
  EXPECT_TRUE(same(run.output(), {2, 3, 3, 2}));
  run.backward({1, 2, 3, 4});
  EXPECT_TRUE(same(run.gradient(0), {0, 2, 0, 0}));
  EXPECT_TRUE(same(run.gradient(1), {1, 0, 3, 0}));
  EXPECT_TRUE(same(run.gradient(2), {0, 0, 0, 4}));
}

TEST(Crop, TakesAWindowAtTheOffset) {
  LayerRun run(layer<Crop>(CropOptions{.axis = 2, .offset = {1, 2}}), {{1, 1, 3, 4}, {1, 1, 2, 2}}, 1);
  run.forward({numbered({1, 1, 3, 4}), {0, 0, 0, 0}});
  EXPECT_TRUE(same(run.output(), {6, 7, 10, 11}));
  run.backward({1, 2, 3, 4});
  EXPECT_TRUE(same(run.gradient(), {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
}

TEST(Reduction, ReducesTheTrailingAxes) {
  std::vector<double> x{1, -2, 3, -4};
  using Operation = ReductionOptions::Operation;
  std::vector<std::pair<Operation, std::vector<double>>> cases{{Operation::sum, {-2, -2}},
                                                               {Operation::asum, {6, 14}},
                                                               {Operation::sumsq, {10, 50}},
                                                               {Operation::mean, {-1, -1}}};
  for (const auto& [operation, expected] : cases) {
    LayerRun run(layer<Reduction>(ReductionOptions{.operation = operation, .axis = 1, .coeff = 2}), {{2, 2}},
                 1);
    run.forward({x});
    EXPECT_TRUE(same(run.output(), expected));
  }
}

TEST(ArgMax, PutsTheLargerIndexOfTiesFirst) {
  LayerRun run(layer<ArgMax>(ArgMaxOptions{.out_max_val = true, .top_k = 2}), {{2, 3}}, 1);
  run.forward({{5, 7, 7, 3, 2, 1}});
  EXPECT_TRUE(same(run.output(), {2, 7, 1, 7, 0, 3, 1, 2}));  // memory: rank, then index and value
}

TEST(ArgMax, WorksAlongAnAxis) {
  LayerRun indices(layer<ArgMax>(ArgMaxOptions{.axis = 1}), {{1, 3, 2}}, 1);
  indices.forward({{1, 9, 4, 8, 2, 6}});  // positions (1, 9, 4) and (8, 2, 6)
  EXPECT_TRUE(same(indices.output(), {1, 0}));
  LayerRun values(layer<ArgMax>(ArgMaxOptions{.out_max_val = true, .axis = -1}), {{1, 3, 2}}, 1);
  values.forward({{1, 9, 4, 8, 2, 6}});
  EXPECT_TRUE(same(values.output(), {8, 9, 6}));
}

TEST(Tile, RepeatsAlongItsAxis) {
  LayerRun run(layer<Tile>(TileOptions{.axis = 1, .tiles = 2}), {{1, 2, 2}}, 1);
  run.forward({{1, 2, 3, 4}});
  EXPECT_TRUE(same(run.output(), {1, 2, 1, 2, 3, 4, 3, 4}));
}

TEST(ShuffleChannel, DealsTheGroupsOutInTurns) {
  LayerRun run(layer<ShuffleChannel>(ShuffleChannelOptions{.group = 2}), {{1, 6, 2}}, 1);
  run.forward({{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}});
  EXPECT_TRUE(
      same(run.output(), {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11}));  // channel by channel of each position
}

TEST(Permute, MovesEachElementToItsPermutedIndex) {
  const Shape input{2, 3, 2, 4}, output{2, 2, 4, 3};  // N H W C
  LayerRun run(layer<Permute>(PermuteOptions{.order = {0, 2, 3, 1}}), {input}, 1);
  run.forward({numbered(input)});
  const Place place = tensor_place(Box::whole(output));
  std::vector<double> expected(output.size());
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t w = 0; w < 4; ++w)
          expected[place(Index{n, h, w, c})] = static_cast<double>(((n * 3 + c) * 2 + h) * 4 + w);
  EXPECT_TRUE(same(run.output(), expected));
  run.backward(expected);
  EXPECT_TRUE(same(run.gradient(), numbered(input)));
}

TEST(Axpy, ScalesChannelsAndAdds) {
  LayerRun run(layer<Axpy>(), {{1, 2}, {1, 2, 2}, {1, 2, 2}}, 1);
  run.forward({{10, -1}, {1, 2, 3, 4}, {5, 6, 7, 8}});  // position by position, channels 0 and 1
  EXPECT_TRUE(same(run.output(), {15, 4, 37, 4}));
  run.backward({1, 2, 3, 4});
  EXPECT_TRUE(same(run.gradient(0), {1 * 1 + 3 * 3, 2 * 2 + 4 * 4}));
  EXPECT_TRUE(same(run.gradient(1), {10, -2, 30, -4}));
  EXPECT_TRUE(same(run.gradient(2), {1, 2, 3, 4}));
}

TEST(BatchReindex, ChoosesSamplesAndSumsTheirGradients) {
  LayerRun run(layer<BatchReindex>(), {{3, 2}, {4}}, 1);
  run.forward({{1, 2, 3, 4, 5, 6}, {2, 0, 2, 1}});
  EXPECT_TRUE(same(run.output(), {5, 6, 1, 2, 5, 6, 3, 4}));
  run.backward({1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(same(run.gradient(), {3, 4, 7, 8, 1 + 5, 2 + 6}));
  for (double index : {-1.0, 3.0, std::nan("")})
    EXPECT_THROW(run.forward({{1, 2, 3, 4, 5, 6}, {0, index, 1, 2}}), UserError);
}

// Caffe's TestForward and TestGradient: several tensors follow one selector.
TEST(Filter, PassesTheSelectedSamplesOn) {
  LayerRun run(layer<Filter>(FilterOptions{.samples = 2}), {{4, 2}, {4}, {4, 1}}, 2);
  run.forward({{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40}, {0, 1, 0, -3}});
  EXPECT_TRUE(same(run.output(0), {3, 4, 7, 8}));
  EXPECT_TRUE(same(run.output(1), {20, 40}));
  run.backward({1, 2, 3, 4});
  EXPECT_TRUE(same(run.gradient(0), {0, 0, 1, 2, 0, 0, 3, 4}));
  EXPECT_TRUE(same(run.gradient(2), {0, 0, 0, 0}));
  std::string reason;
  try {
    run.forward({{1, 2, 3, 4, 5, 6, 7, 8}, {10, 20, 30, 40}, {0, 1, 1, 1}});
  } catch (const UserError& error) {
    reason = error.what();
  }
  EXPECT_EQ(reason, "3 of 4 samples pass, not 2 as filter_param.samples says");
}

TEST(Parameter, PutsItsParameterOut) {
  Task task = task_of(layer<Parameter>(ParameterOptions{.shape = {2, 3, 4}}), {});
  EXPECT_TRUE(gradients_match_differences(task));
  auto kernel = make_reference_kernel<double>(task);
  check::TaskBuffers<double> buffers(task, *kernel, check::TaskData<double>(task, {}));
  std::vector<double> canonical(24);
  for (int i = 0; i < 24; ++i) canonical[i] = i;
  buffers.parameters[0].set(canonical);
  kernel->forward(buffers.arguments());
  EXPECT_TRUE(same(buffers.outputs[0].values(), numbered({2, 3, 4})));
}

TEST(Embed, NamesAnIndexOutsideItsTable) {
  LayerRun run(layer<Embed>(EmbedOptions{.num_output = 2, .input_dim = 3}), {{2}}, 1);
  EXPECT_THROW(run.forward({{0, 3}}), UserError);
  run.forward({{0, 2}});
}

TEST(Silence, HasNoGradient) {
  LayerRun run(layer<Silence>(), {{2, 3}}, 0);
  run.forward({{1, 2, 3, 4, 5, 6}});
  EXPECT_FALSE(Silence().differentiable(0));
}

TEST(Hdf5Output, AppendsBatchesInSpokenOrderAsFourAxes) {
  std::string file = testing::TempDir() + "cortado_hdf5_output.h5";
  {
    LayerRun run(layer<Hdf5Output>(Hdf5OutputOptions{.file_name = file}), {{2, 2, 3}, {2}}, 0);
    for (int pass = 0; pass < 2; ++pass) run.forward({numbered({2, 2, 3}), {5, 6}});
  }
  hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(id, 0);
  using Extents = std::vector<hsize_t>;
  for (const auto& [name, once, extents] :
       {std::tuple{"data", 12, Extents{4, 2, 3, 1}}, std::tuple{"label", 2, Extents{4, 1, 1, 1}}}) {
    hid_t data = H5Dopen2(id, name, H5P_DEFAULT);
    hid_t space = H5Dget_space(data);
    Extents found(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, found.data(), nullptr);
    EXPECT_EQ(found, extents) << name;
    H5Sclose(space);
    std::vector<double> values(2 * once), expected;
    ASSERT_GE(H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
    for (int i = 0; i < 2 * once; ++i) expected.push_back(once == 2 ? 5 + i % 2 : i % once);
    EXPECT_TRUE(same(values, expected)) << name;
    H5Dclose(data);
  }
  H5Fclose(id);
  LayerRun nowhere(layer<Hdf5Output>(Hdf5OutputOptions{.file_name = "/no/such/folder/x.h5"}), {{2, 3}, {2}},
                   0);
  EXPECT_THROW(nowhere.forward({}), UserError);
}

TEST(ShapeLayerGradients, MatchFiniteDifferences) {
  for (int axis : {0, 1, 2, -1}) {
    std::vector<Shape> parts(2, Shape{2, 3, 2, 2});
    parts[1].set(axis < 0 ? 3 : axis, 5);
    EXPECT_TRUE(gradients_match_differences(task_of(layer<Concat>(ConcatOptions{.axis = axis}), parts)));
    EXPECT_TRUE(
        gradients_match_differences(task_of(layer<Slice>(SliceOptions{.axis = axis}), {{2, 4, 2, 6}}, 2)));
    EXPECT_TRUE(gradients_match_differences(
        task_of(layer<Tile>(TileOptions{.axis = axis, .tiles = 3}), {{2, 4, 2, 2}})));
  }
  EXPECT_TRUE(gradients_match_differences(
      task_of(layer<ShuffleChannel>(ShuffleChannelOptions{.group = 3}), {{2, 6, 2, 3}})));
  EXPECT_TRUE(gradients_match_differences(
      task_of(layer<Crop>(CropOptions{.axis = 1, .offset = {1, 0, 2}}), {{2, 4, 3, 5}, {2, 2, 3, 2}})));
  for (int axis : {0, 1, 3}) {
    for (int operation = 0; operation < 4; ++operation) {
      ReductionOptions options{static_cast<ReductionOptions::Operation>(operation), axis, 0.5};
      EXPECT_TRUE(gradients_match_differences(task_of(layer<Reduction>(options), {{2, 3, 2, 2}})));
    }
  }
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 2, 3, 1}, {3, 1}, {1, 0, 2, 3}}) {
    EXPECT_TRUE(
        gradients_match_differences(task_of(layer<Permute>(PermuteOptions{.order = order}), {{2, 3, 2, 4}})));
  }
  EXPECT_TRUE(gradients_match_differences(task_of(layer<Axpy>(), {{2, 3, 1}, {2, 3, 2, 2}, {2, 3, 2, 2}})));
  std::vector<Shape> three(3, Shape{2, 3, 2});
  using Operation = EltwiseOptions::Operation;
  for (EltwiseOptions options :
       {EltwiseOptions{.operation = Operation::prod},
        EltwiseOptions{.operation = Operation::prod, .stable_prod_grad = false},
        EltwiseOptions{.coeff = {1, -2, 0.5}}, EltwiseOptions{.operation = Operation::max}}) {
    EXPECT_TRUE(gradients_match_differences(task_of(layer<Eltwise>(options), three)));
  }
  CheckOptions chosen{.inputs = {{}, {.low = 0, .high = 3, .integers = true}}};
  EXPECT_TRUE(gradients_match_differences(task_of(layer<BatchReindex>(), {{3, 2, 2, 2}, {5}}), chosen));
  CheckOptions selected{.inputs = {{}, {}, {.low = 1, .high = 3, .integers = true}}};
  EXPECT_TRUE(gradients_match_differences(
      task_of(layer<Filter>(FilterOptions{.samples = 3}), {{3, 2, 2, 2}, {3, 4}, {3}}, 2), selected));
  CheckOptions indices{.inputs = {{.low = 0, .high = 5, .integers = true}}};
  EXPECT_TRUE(gradients_match_differences(
      task_of(layer<Embed>(EmbedOptions{.num_output = 3, .input_dim = 5}), {{2, 4}}), indices));
}

TEST(ShapeLayerBoxes, AreWhatIsRead) {
  std::vector<Shape> parts{{2, 3, 4, 3}, {2, 2, 4, 3}};
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Concat>(ConcatOptions{}), parts), true));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Slice>(SliceOptions{}), {{2, 4, 3, 2}}, 2), false));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Split>(), {{2, 4, 3, 2}}, 2), true));
  EXPECT_TRUE(input_boxes_hold(
      task_of(layer<Eltwise>(EltwiseOptions{}), std::vector<Shape>(3, Shape{2, 3, 4})), true));
  EXPECT_TRUE(input_boxes_hold(
      task_of(layer<Crop>(CropOptions{.offset = {2, 1}}), {{2, 3, 6, 5}, {2, 3, 3, 4}}), true));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Flatten>(FlattenOptions{}), {{3, 2, 4, 2}}), false));
  EXPECT_TRUE(
      input_boxes_hold(task_of(layer<Reshape>(ReshapeOptions{.shape = {-1, 4}}), {{3, 2, 4, 2}}), false));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Reduction>(ReductionOptions{.axis = 2}), {{3, 2, 4, 2}}), true));
  EXPECT_TRUE(
      input_boxes_hold(task_of(layer<ArgMax>(ArgMaxOptions{.out_max_val = true}), {{3, 2, 4}}), false));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<ArgMax>(ArgMaxOptions{.axis = 1}), {{3, 5, 4}}), false));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Tile>(TileOptions{.axis = 2, .tiles = 2}), {{3, 2, 4}}), false));
  EXPECT_TRUE(input_boxes_hold(
      task_of(layer<ShuffleChannel>(ShuffleChannelOptions{.group = 2}), {{3, 4, 2, 3}}), false));
  EXPECT_TRUE(
      input_boxes_hold(task_of(layer<Permute>(PermuteOptions{.order = {0, 2, 3, 1}}), {{3, 4, 2, 3}}), true));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<BatchReindex>(), {{3, 4, 2, 3}, {5}}), false,
                               {.inputs = {{}, {.low = 0, .high = 3, .integers = true}}}));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Axpy>(), {{3, 4}, {3, 4, 2, 3}, {3, 4, 2, 3}}), true));
  EXPECT_TRUE(input_boxes_hold(task_of(layer<Softmax>(SoftmaxOptions{.axis = 1}), {{3, 2, 4}}), true));
}

}  // namespace
}  // namespace cortado
