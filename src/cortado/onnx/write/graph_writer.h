#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// An attribute of a node.
AttributeProto attribute(const std::string& name, int64_t value);
AttributeProto attribute(const std::string& name, double value);
AttributeProto attribute(const std::string& name, const std::vector<int64_t>& values);
AttributeProto attribute(const std::string& name, const char* text);

// The graph that a network becomes, node by node. Values are known by their names.
class GraphWriter {
 public:
  explicit GraphWriter(GraphProto& graph) : graph_(graph) {}

  // A name that no value has: `wish`, or that with a number.
  std::string unused(const std::string& wish);
  // Adds a node of the layer `layer`; its outputs are named, or get names.
  void node(const std::string& layer, const std::string& type, const std::vector<std::string>& inputs,
            const std::vector<std::string>& outputs, const std::vector<AttributeProto>& attributes = {});
  std::string node(const std::string& layer, const std::string& type, const std::vector<std::string>& inputs,
                   const std::vector<AttributeProto>& attributes = {});

  // Constants, as initializers.
  std::string floats(const std::string& name, const Shape& shape, const std::vector<float>& values);
  std::string number(const std::string& name, double value);  // without axes
  std::string integers(const std::string& name, const std::vector<int64_t>& values);

 private:
  GraphProto& graph_;
  std::set<std::string> names_, node_names_;  // of values; of nodes
};

// A layer of the network while it becomes nodes.
class WrittenLayer {
 public:
  using Values = std::function<std::vector<float>(ParameterIndex)>;
  WrittenLayer(const Network& network, NodeIndex index, const Values& values, GraphWriter& graph,
               std::vector<std::string> inputs, std::vector<std::string> outputs);

  // Another layer of the network, for its options and parameters.
  WrittenLayer other(NodeIndex index) const { return {network_, index, values_, graph_, {}, {}}; }

  const Network& network() const { return network_; }
  const Network::Node& node() const { return network_.nodes()[index_]; }
  NodeIndex index() const { return index_; }
  const std::string& name() const { return node().name; }
  template <class Type>
  const Type& as() const {
    return dynamic_cast<const Type&>(*node().layer);
  }
  const Shape& input_shape(int i) const {
    return network_.tensors()[node().inputs[static_cast<size_t>(i)]].shape;
  }
  const Shape& output_shape(int i) const {
    return network_.tensors()[node().outputs[static_cast<size_t>(i)]].shape;
  }

  const std::string& input(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const std::vector<std::string>& inputs() const { return inputs_; }
  const std::string& output(int i = 0) const { return outputs_[static_cast<size_t>(i)]; }
  const std::vector<std::string>& outputs() const { return outputs_; }

  std::vector<float> values(int i) const { return values_(node().parameters[static_cast<size_t>(i)]); }
  const Shape& parameter_shape(int i) const { return node().parameter_shapes[static_cast<size_t>(i)]; }
  // The parameter as an initializer, seen in `shape`; by default in its own.
  std::string parameter(int i);
  std::string parameter(int i, const Shape& shape);

  GraphWriter& graph() { return graph_; }
  // A node whose output gets a name.
  std::string step(const std::string& type, const std::vector<std::string>& inputs,
                   const std::vector<AttributeProto>& attributes = {});
  // The node that makes the layer's output.
  void last(const std::string& type, const std::vector<std::string>& inputs,
            const std::vector<AttributeProto>& attributes = {});
  std::string number(double value) { return graph_.number(name() + "/number", value); }
  std::string integers(const std::vector<int64_t>& values) {
    return graph_.integers(name() + "/integers", values);
  }

 private:
  const Network& network_;
  NodeIndex index_;
  const Values& values_;
  GraphWriter& graph_;
  std::vector<std::string> inputs_, outputs_;
};

// The extents of a shape as a Reshape's operand; samples that stay are 0, so that their number is open.
std::vector<int64_t> reshape_target(const Shape& from, const Shape& to);

}  // namespace cortado::onnx
