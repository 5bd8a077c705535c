#include "cortado/onnx/read/node.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::onnx {
namespace {

// "layer1.0.conv1" of "layer1.0.conv1.weight", "conv1" of "/conv1/Conv" or "/conv1/Conv_3".
std::string name_of_node(const NodeProto& node) {
  for (int i = 1; i < std::min(node.input_size(), 2); ++i) {
    const std::string& weight = node.input(i);
    constexpr std::string_view ending = ".weight";
    if (weight.size() > ending.size() && weight.ends_with(ending))
      return weight.substr(0, weight.size() - ending.size());
  }
  std::string name = node.name();
  if (name.starts_with('/')) name.erase(0, 1);
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos && name.compare(slash + 1, node.op_type().size(), node.op_type()) == 0)
    name.erase(slash);
  if (!name.empty()) return name;
  return node.output_size() > 0 && !node.output(0).empty() ? node.output(0) : node.op_type();
}

}  // namespace

Node::Node(const NodeProto& message, std::vector<const Value*> inputs, std::vector<bool> wanted,
           NetWriter& net, std::vector<std::string>& notices)
    : attributes(message),
      message_(message),
      inputs_(std::move(inputs)),
      wanted_(std::move(wanted)),
      outputs_(static_cast<size_t>(message.output_size())),
      net_(net),
      notices_(notices),
      name_(name_of_node(message)) {}

const Value& Node::input(int i) const {
  if (!has(i)) throw UserError(fmt::format("input {} is not given; the file is broken", i));
  return *inputs_[static_cast<size_t>(i)];
}

const Value& Node::activation(int i) const {
  const Value& value = input(i);
  if (value.constant)
    throw UserError(
        fmt::format("input {} is a constant of shape {}; Cortado has layers for what comes from the graph's "
                    "inputs alone",
                    i, value.constant->shape.text()));
  if (value.order.empty()) return value;
  const auto known = in_order_.find(i);
  return known != in_order_.end() ? known->second : in_order_.emplace(i, net_.in_order(value)).first->second;
}

const Constant& Node::constant(int i) const {
  const Value& value = input(i);
  if (!value.constant)
    throw UserError(
        fmt::format("input {} is computed from the graph's inputs, and must be a constant (an initializer); "
                    "export the model with fixed shapes and folded constants",
                    i));
  return *value.constant;
}

std::vector<Value> Node::activations() const {
  std::vector<Value> values;
  for (int i = 0; i < inputs(); ++i) values.push_back(activation(i));
  return values;
}

std::vector<int64_t> Node::integers(int i) const {
  const Constant& values = constant(i);
  if (!values.whole) throw UserError(fmt::format("input {} must hold integers, and holds floats", i));
  return values.integers;
}

double Node::scalar(int i) const {
  const Constant& value = constant(i);
  if (value.size() != 1)
    throw UserError(fmt::format("input {} must be one number, and is of shape {}", i, value.shape.text()));
  return value.number(0);
}

void Node::check_inputs(int least, int most) const {
  if (inputs() < least || inputs() > most)
    throw UserError(fmt::format("has {} inputs; this operator takes {} to {}", inputs(), least, most));
}

void Node::give(Value value, int output) {
  if (output >= outputs())
    throw UserError(fmt::format("has {} outputs, needs {}; the file is broken", outputs(), output + 1));
  outputs_[static_cast<size_t>(output)] = std::move(value);
}

Value Node::layer(caffe::LayerParameter layer, const Value& input, std::vector<Blob> blobs,
                  const std::string& part) {
  return net_.add(std::move(layer), name_ + part, {input}, std::move(blobs))[0];
}

std::vector<Value> Node::layers(caffe::LayerParameter layer, const std::vector<Value>& inputs, int outputs,
                                const std::string& part) {
  return net_.add(std::move(layer), name_ + part, inputs, {}, outputs);
}

uint32_t window_option(const std::string& what, int64_t value, int64_t least) {
  constexpr int64_t most = 1 << 16;  // as net/caffe/options.cpp has it
  if (value < least || value > most)
    throw UserError(fmt::format("{} is {}; it can be {} to {}", what, value, least, most));
  return static_cast<uint32_t>(value);
}

float number_option(double value) {
  const auto number = static_cast<float>(value);
  if (!std::isfinite(number)) throw UserError(fmt::format("it computes with the number {}", value));
  return number;
}

int axis_of(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw UserError(fmt::format("axis {} is outside a tensor of {} axes", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int64_t>> integers_of(const Node& node, int i, const std::string& name) {
  std::optional<std::vector<int64_t>> attribute = node.attributes.integers(name);
  if (attribute) return attribute;
  if (!node.has(i)) return std::nullopt;
  return node.integers(i);
}

SliceRanges slice_ranges(const Node& node) {
  SliceRanges ranges{.starts = node.integers(1), .ends = node.integers(2), .axes = {}, .steps = {}};
  const size_t count = ranges.starts.size();
  for (size_t i = 0; i < count; ++i) ranges.axes.push_back(static_cast<int64_t>(i));
  ranges.steps.assign(count, 1);
  if (node.has(3)) ranges.axes = node.integers(3);
  if (node.has(4)) ranges.steps = node.integers(4);
  if (ranges.ends.size() != count || ranges.axes.size() != count || ranges.steps.size() != count)
    throw UserError("starts, ends, axes and steps differ in length; the file is broken");
  return ranges;
}

caffe::LayerParameter layer_of_type(const std::string& type) {
  caffe::LayerParameter layer;
  layer.set_type(type);
  return layer;
}

Blob blob_of(const Constant& constant, const Shape& shape) {
  if (constant.whole) throw UserError("a weight must be of floats, and is of integers");
  ensure(constant.size() == shape.size(), "a weight keeps its number of values");
  return {shape, constant.floats};
}

}  // namespace cortado::onnx
