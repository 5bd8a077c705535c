#include "cortado/onnx/write/graph_writer.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace cortado::onnx {
namespace {

template <typename Value>
void set_raw(TensorProto& tensor, const std::vector<Value>& values) {
  static_assert(std::endian::native == std::endian::little, "raw data are little-endian");
  std::string bytes(values.size() * sizeof(Value), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  tensor.set_raw_data(std::move(bytes));
}

// "conv1.weight" of "conv1/weight": what PyTorch calls a parameter.
std::string parameter_name(std::string name) {
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos) name[slash] = '.';
  return name;
}

}  // namespace

AttributeProto attribute(const std::string& name, int64_t value) {
  AttributeProto result;
  result.set_name(name);
  result.set_type(AttributeProto::INT);
  result.set_i(value);
  return result;
}

AttributeProto attribute(const std::string& name, double value) {
  AttributeProto result;
  result.set_name(name);
  result.set_type(AttributeProto::FLOAT);
  result.set_f(static_cast<float>(value));
  return result;
}

AttributeProto attribute(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto result;
  result.set_name(name);
  result.set_type(AttributeProto::INTS);
  result.mutable_ints()->Add(values.begin(), values.end());
  return result;
}

AttributeProto attribute(const std::string& name, const char* text) {
  AttributeProto result;
  result.set_name(name);
  result.set_type(AttributeProto::STRING);
  result.set_s(text);
  return result;
}

// The wish, or the first of wish_1, wish_2, ... that is not among the names; then it is.
static std::string unused_among(std::set<std::string>& names, const std::string& wish) {
  std::string name = wish;
  for (int number = 1; !names.insert(name).second; ++number) name = fmt::format("{}_{}", wish, number);
  return name;
}

std::string GraphWriter::unused(const std::string& wish) { return unused_among(names_, wish); }

void GraphWriter::node(const std::string& layer, const std::string& type,
                       const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                       const std::vector<AttributeProto>& attributes) {
  NodeProto& node = *graph_.add_node();
  node.set_op_type(type);
  node.set_name(unused_among(node_names_, fmt::format("{}/{}", layer, type)));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  for (const AttributeProto& one : attributes) *node.add_attribute() = one;
}

std::string GraphWriter::node(const std::string& layer, const std::string& type,
                              const std::vector<std::string>& inputs,
                              const std::vector<AttributeProto>& attributes) {
  const std::string output = unused(fmt::format("{}/{}", layer, type));
  node(layer, type, inputs, {output}, attributes);
  return output;
}

std::string GraphWriter::floats(const std::string& name, const Shape& shape,
                                const std::vector<float>& values) {
  TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(unused(name));
  tensor.set_data_type(TensorProto::FLOAT);
  for (int64_t extent : shape.extents()) tensor.add_dims(extent);
  set_raw(tensor, values);
  return tensor.name();
}

std::string GraphWriter::number(const std::string& name, double value) {
  return floats(name, {}, {static_cast<float>(value)});
}

std::string GraphWriter::integers(const std::string& name, const std::vector<int64_t>& values) {
  TensorProto& tensor = *graph_.add_initializer();
  tensor.set_name(unused(name));
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  set_raw(tensor, values);
  return tensor.name();
}

WrittenLayer::WrittenLayer(const Network& network, NodeIndex index, const Values& values, GraphWriter& graph,
                           std::vector<std::string> inputs, std::vector<std::string> outputs)
    : network_(network),
      index_(index),
      values_(values),
      graph_(graph),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)) {}

std::string WrittenLayer::parameter(int i) { return parameter(i, parameter_shape(i)); }

std::string WrittenLayer::parameter(int i, const Shape& shape) {
  const Network::Parameter& parameter = network_.parameters()[node().parameters[static_cast<size_t>(i)]];
  return graph_.floats(parameter_name(parameter.name), shape, values(i));
}

std::string WrittenLayer::step(const std::string& type, const std::vector<std::string>& inputs,
                               const std::vector<AttributeProto>& attributes) {
  return graph_.node(name(), type, inputs, attributes);
}

void WrittenLayer::last(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<AttributeProto>& attributes) {
  graph_.node(name(), type, inputs, {output()}, attributes);
}

std::vector<int64_t> reshape_target(const Shape& from, const Shape& to) {
  std::vector<int64_t> target(to.extents().begin(), to.extents().end());
  if (from.rank() > 0 && to.rank() > 0 && from[0] == to[0]) target[0] = 0;
  return target;
}

}  // namespace cortado::onnx
