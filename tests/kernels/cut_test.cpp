// Tasks on parts of tensors: the parts of a cut layer, each computed from its input box and its slice of the
// parameters, together give what the whole layer gives, forward and backward.
#include <cmath>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/scale.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

std::vector<double> slice(const std::vector<double>& whole, const Place& from, const Place& to) {
  std::vector<double> part(to.size());
  for_each_index(to.box(), [&](const Index& index) { part[to(index)] = whole[from(index)]; });
  return part;
}

void add(const std::vector<double>& part, const Place& from, std::vector<double>& whole, const Place& to) {
  for_each_index(from.box(), [&](const Index& index) { whole[to(index)] += part[from(index)]; });
}

void expect_same(const std::vector<double>& expected, const std::vector<double>& actual, const char* what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-10) << what << " at offset " << i;
  }
}

std::vector<std::vector<double>> values_of(const std::vector<Buffer<double>>& buffers) {
  std::vector<std::vector<double>> values;
  for (const auto& each : buffers) values.push_back(each.values());
  return values;
}

struct RunValues {
  std::vector<std::vector<double>> outputs, input_gradients, parameter_gradients;
};

RunValues run(const Task& task, const TaskData<double>& data) {
  auto kernel = make_reference_kernel<double>(task);
  TaskBuffers<double> buffers(task, *kernel, data);
  kernel->forward(buffers.arguments());
  if (task.layer().splits_backward()) kernel->backward_weights(buffers.arguments());
  kernel->backward(buffers.arguments());
  return {values_of(buffers.outputs), values_of(buffers.input_gradients),
          values_of(buffers.parameter_gradients)};
}

// The layer cut along output axis `axis` into `parts`. parameter_axes[p]: the axis of parameter p that
// follows the output's channels, -1 for none.
void expect_cut_equals_whole(LayerPtr layer, const Shape& input, int axis, int64_t parts,
                             const std::vector<int>& parameter_axes) {
  Task task = whole_task(layer, Phase::train, {&input, 1}, 1);
  TaskData<double> data(task, {});
  RunValues whole = run(task, data);
  std::vector<Box> parameters;
  for (const ParameterSpec& spec : layer->parameters({&input, 1}))
    parameters.push_back(Box::whole(spec.shape));

  Place input_place = tensor_place(task.input_boxes[0]), output_place = tensor_place(task.output_boxes[0]);
  std::vector<double> output(output_place.size()), input_gradient(input_place.size());
  auto parameter_gradients = whole.parameter_gradients;
  for (auto& each : parameter_gradients) std::fill(each.begin(), each.end(), 0.0);

  for (int64_t part = 0; part < parts; ++part) {
    Task cut = task;
    int64_t extent = task.outputs[0][axis];
    cut.output_boxes[0][axis] = {extent * part / parts, extent * (part + 1) / parts};
    cut.input_boxes[0] = layer->input_box({&input, 1}, 0, 0, cut.output_boxes[0]);
    Place in = tensor_place(cut.input_boxes[0]), out = tensor_place(cut.output_boxes[0]);
    TaskData<double> local = data;
    local.inputs[0] = slice(data.inputs[0], input_place, in);
    local.output_gradients[0] = slice(data.output_gradients[0], output_place, out);
    std::vector<Place> places;
    for (size_t p = 0; p < parameters.size(); ++p) {
      Box box = parameters[p];
      if (axis == 1 && parameter_axes[p] >= 0) box[parameter_axes[p]] = cut.output_boxes[0][1];
      places.push_back(parameter_place(box));
      local.parameters[p] = slice(data.parameters[p], parameter_place(parameters[p]), places[p]);
    }
    RunValues values = run(cut, local);
    add(values.outputs[0], out, output, output_place);
    add(values.input_gradients[0], in, input_gradient, input_place);
    for (size_t p = 0; p < parameters.size(); ++p) {
      add(values.parameter_gradients[p], places[p], parameter_gradients[p], parameter_place(parameters[p]));
    }
  }
  expect_same(whole.outputs[0], output, "output");
  expect_same(whole.input_gradients[0], input_gradient, "input gradient");
  for (size_t p = 0; p < parameters.size(); ++p) {
    expect_same(whole.parameter_gradients[p], parameter_gradients[p], "parameter gradient");
  }
}

TEST(Cut, Convolution) {
  ConvolutionOptions options{.num_output = 6, .kernel = {3}, .stride = {2}, .pad = {1}};
  ConvolutionOptions grouped{
      .num_output = 6, .group = 3, .kernel = {3, 2}, .pad = {2, 0}, .dilation = {2, 1}};
  Shape input{3, 3, 9, 11};
  for (int axis = 0; axis < 4; ++axis) {
    expect_cut_equals_whole(std::make_shared<Convolution>(options), input, axis, 3, {0, 0});
    expect_cut_equals_whole(std::make_shared<Convolution>(grouped), input, axis, 3, {0, 0});
    expect_cut_equals_whole(std::make_shared<Deconvolution>(options), input, axis, 3, {1, 0});
  }
}

TEST(Cut, Pooling) {
  for (auto method : {PoolingOptions::Method::max, PoolingOptions::Method::average}) {
    auto layer =
        std::make_shared<Pooling>(PoolingOptions{.method = method, .kernel = {3}, .stride = {2}, .pad = {1}});
    for (int axis = 0; axis < 5; ++axis) expect_cut_equals_whole(layer, {2, 3, 6, 7, 8}, axis, 2, {});
  }
}

TEST(Cut, DropoutDrawsTheSame) {
  auto dropout = std::make_shared<Dropout>(DropoutOptions{.ratio = 0.3});
  for (int axis = 0; axis < 4; ++axis) expect_cut_equals_whole(dropout, {4, 5, 6, 7}, axis, 3, {});
}

TEST(Cut, InnerProduct) {
  auto layer = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 7});
  auto transposed = std::make_shared<InnerProduct>(InnerProductOptions{.num_output = 7, .transpose = true});
  for (int axis = 0; axis < 2; ++axis) {
    expect_cut_equals_whole(layer, {4, 3, 2, 2}, axis, 2, {0, 0});
    expect_cut_equals_whole(transposed, {4, 3, 2, 2}, axis, 2, {1, 0});
  }
}

TEST(Cut, ElementwiseLayers) {
  for (int axis = 0; axis < 4; ++axis) {
    expect_cut_equals_whole(std::make_shared<Pointwise>(TanhOptions{}), {4, 5, 6, 7}, axis, 3, {});
    expect_cut_equals_whole(std::make_shared<PRelu>(PReluOptions{}), {4, 5, 6, 7}, axis, 3, {0});
    expect_cut_equals_whole(std::make_shared<Scale>(ScaleOptions{.bias_term = true}), {4, 5, 6, 7}, axis, 3,
                            {0, 0});
    expect_cut_equals_whole(std::make_shared<Bias>(BiasOptions{}), {4, 5, 6, 7}, axis, 3, {0});
  }
}

}  // namespace
}  // namespace cortado::check
