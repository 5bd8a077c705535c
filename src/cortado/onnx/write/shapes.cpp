#include <numeric>
#include <variant>

#include "cortado/base/error.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/tile.h"
#include "cortado/onnx/write/layers.h"

namespace cortado::onnx {
namespace {

AttributeProto axis_attribute(const WrittenLayer& layer, int axis) {
  return attribute("axis", int64_t{layer.input_shape(0).canonical_axis(axis)});
}

void write_concat(WrittenLayer& layer) {
  layer.last("Concat", layer.inputs(), {axis_attribute(layer, layer.as<Concat>().options().axis)});
}

void write_slice(WrittenLayer& layer) {
  const int axis = layer.input_shape(0).canonical_axis(layer.as<Slice>().options().axis);
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < layer.outputs().size(); ++i)
    sizes.push_back(layer.output_shape(static_cast<int>(i))[axis]);
  std::vector<std::string> outputs = layer.outputs();
  for (std::string& output : outputs)
    if (output.empty()) output = layer.graph().unused(layer.name() + "/unread");
  layer.graph().node(layer.name(), "Split", {layer.input(0), layer.integers(sizes)}, outputs,
                     {attribute("axis", int64_t{axis})});
}

void write_split(WrittenLayer& layer) {
  for (const std::string& output : layer.outputs())
    if (!output.empty()) layer.graph().node(layer.name(), "Identity", {layer.input(0)}, {output});
}

// Flatten and Reshape: the shape is known.
void write_reshape(WrittenLayer& layer) {
  layer.last("Reshape",
             {layer.input(0), layer.integers(reshape_target(layer.input_shape(0), layer.output_shape(0)))});
}

void write_crop(WrittenLayer& layer) {
  const Shape &input = layer.input_shape(0), &output = layer.output_shape(0);
  const std::vector<int64_t> offsets = layer.as<Crop>().offsets(input);
  std::vector<int64_t> starts, ends, axes;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (input[axis] == output[axis]) continue;
    const int64_t start = offsets[static_cast<size_t>(axis)];
    starts.push_back(start);
    ends.push_back(start + output[axis]);
    axes.push_back(axis);
  }
  if (axes.empty()) return layer.last("Identity", {layer.input(0)});
  layer.last("Slice", {layer.input(0), layer.integers(starts), layer.integers(ends), layer.integers(axes)});
}

void write_reduction(WrittenLayer& layer) {
  const ReductionOptions& options = layer.as<Reduction>().options();
  using Operation = ReductionOptions::Operation;
  const int rank = layer.input_shape(0).rank(), first = layer.input_shape(0).canonical_axis(options.axis);
  std::vector<int64_t> axes(static_cast<size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  std::vector<std::string> inputs{layer.input(0)};
  std::vector<AttributeProto> attributes{attribute("keepdims", int64_t{0})};
  if (options.operation == Operation::sum) {
    inputs.push_back(layer.integers(axes));  // an input since opset 13, of the others since 18
  } else {
    attributes.push_back(attribute("axes", axes));
  }
  const std::string type = options.operation == Operation::sum    ? "ReduceSum"
                           : options.operation == Operation::asum ? "ReduceL1"
                           : options.operation == Operation::mean ? "ReduceMean"
                                                                  : "ReduceSumSquare";
  if (options.coeff == 1) return layer.last(type, inputs, attributes);
  layer.last("Mul", {layer.step(type, inputs, attributes), layer.number(options.coeff)});
}

void write_tile(WrittenLayer& layer) {
  const TileOptions& options = layer.as<Tile>().options();
  std::vector<int64_t> repeats(static_cast<size_t>(layer.input_shape(0).rank()), 1);
  repeats[static_cast<size_t>(layer.input_shape(0).canonical_axis(options.axis))] = options.tiles;
  layer.last("Tile", {layer.input(0), layer.integers(repeats)});
}

// Linear: the edges of both images meet, as where PyTorch says align_corners=False.
void write_upsample(WrittenLayer& layer) {
  const auto& options = std::get<UpsampleOptions>(layer.as<Resampling>().options());
  std::vector<float> scales(static_cast<size_t>(layer.input_shape(0).rank()),
                            static_cast<float>(options.scale));
  scales[0] = scales[1] = 1;
  const bool linear = options.mode == UpsampleOptions::Mode::linear;
  const std::string factors =
      layer.graph().floats(layer.name() + "/scales", {static_cast<int64_t>(scales.size())}, scales);
  layer.last("Resize", {layer.input(0), "", factors},
             {attribute("mode", linear ? "linear" : "nearest"),
              attribute("coordinate_transformation_mode", linear ? "half_pixel" : "asymmetric"),
              attribute("nearest_mode", "floor")});
}

// The first and last positions of both images meet, as where PyTorch says align_corners=True. The number of
// samples stays open.
void write_interp(WrittenLayer& layer) {
  const auto& options = std::get<InterpOptions>(layer.as<Resampling>().options());
  const Shape &input = layer.input_shape(0), &output = layer.output_shape(0);
  std::string image = layer.input(0);
  std::vector<int64_t> starts, ends, axes, extents;
  for (int axis = 2; axis < input.rank(); ++axis) {
    starts.push_back(-options.pad_begin);
    ends.push_back(input[axis] + options.pad_end);
    axes.push_back(axis);
    extents.push_back(output[axis]);
  }
  if (options.pad_begin != 0 || options.pad_end != 0)
    image = layer.step("Slice", {image, layer.integers(starts), layer.integers(ends), layer.integers(axes)});
  const std::string samples =
      layer.step("Slice", {layer.step("Shape", {image}), layer.integers({0}), layer.integers({2})});
  const std::string sizes =
      layer.step("Concat", {samples, layer.integers(extents)}, {attribute("axis", int64_t{0})});
  layer.last("Resize", {image, "", "", sizes},
             {attribute("mode", "linear"), attribute("coordinate_transformation_mode", "align_corners")});
}

void write_permute(WrittenLayer& layer) {
  const std::vector<int> axes = layer.as<Permute>().axes(layer.input_shape(0));
  layer.last("Transpose", {layer.input(0)},
             {attribute("perm", std::vector<int64_t>(axes.begin(), axes.end()))});
}

void write_shuffle(WrittenLayer& layer) {
  const Shape& input = layer.input_shape(0);
  const int64_t group = layer.as<ShuffleChannel>().options().group;
  std::vector<int64_t> grouped{0, group, input[1] / group}, order{0, 2, 1};
  for (int axis = 2; axis < input.rank(); ++axis) {
    grouped.push_back(input[axis]);
    order.push_back(axis + 1);
  }
  const std::string runs = layer.step("Reshape", {layer.input(0), layer.integers(grouped)});
  const std::string dealt = layer.step("Transpose", {runs}, {attribute("perm", order)});
  layer.last("Reshape", {dealt, layer.integers(reshape_target(input, input))});
}

}  // namespace

std::span<const LayerWriter> shape_writers() {
  static constexpr LayerWriter writers[] = {
      {"Concat", write_concat},   {"Slice", write_slice},         {"Split", write_split},
      {"Flatten", write_reshape}, {"Reshape", write_reshape},     {"Crop", write_crop},
      {"Tile", write_tile},       {"Reduction", write_reduction}, {"ShuffleChannel", write_shuffle},
      {"Permute", write_permute}, {"Upsample", write_upsample},   {"Interp", write_interp},
  };
  return writers;
}

}  // namespace cortado::onnx
