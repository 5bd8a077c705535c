#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cortado/onnx/read/attributes.h"
#include "cortado/onnx/read/net_writer.h"
#include "cortado/onnx/read/value.h"

namespace cortado::onnx {

// A node of the graph while it becomes layers. What its functions throw is a UserError without the node's
// name, which the caller adds.
class Node {
 public:
  // `inputs`: null for those that are not given. `notices`: gets a line for what the user should know.
  // `wanted`: per output, whether anything reads it.
  Node(const NodeProto& message, std::vector<const Value*> inputs, std::vector<bool> wanted, NetWriter& net,
       std::vector<std::string>& notices);

  const std::string& type() const { return message_.op_type(); }
  // What its layers are called: after its weight ("conv1.weight"), else its own name or that of its output.
  const std::string& name() const { return name_; }
  Attributes attributes;

  int inputs() const { return static_cast<int>(inputs_.size()); }
  bool has(int i) const { return i < inputs() && inputs_[static_cast<size_t>(i)]; }
  bool is_constant(int i) const { return has(i) && inputs_[static_cast<size_t>(i)]->constant; }
  const Value& input(int i) const;             // throws where it is not given
  const Value& activation(int i) const;        // no constant
  const Constant& constant(int i) const;       // a constant
  std::vector<Value> activations() const;      // all inputs, none of them constant
  std::vector<int64_t> integers(int i) const;  // of a constant of integers
  double scalar(int i) const;                  // of a constant with one element
  void check_inputs(int least, int most) const;

  int outputs() const { return static_cast<int>(outputs_.size()); }
  bool reads_output(int i) const {
    return wanted_[static_cast<size_t>(i)];
  }  // another node or the graph does
  void give(Value value, int output = 0);
  std::vector<Value>& results() { return outputs_; }

  // Adds a layer of the net. `part`: what is added to the node's name, where it becomes several layers.
  Value layer(caffe::LayerParameter layer, const Value& input, std::vector<Blob> blobs = {},
              const std::string& part = "");
  std::vector<Value> layers(caffe::LayerParameter layer, const std::vector<Value>& inputs, int outputs = 1,
                            const std::string& part = "");
  NetWriter& net() { return net_; }
  void notice(const std::string& line) { notices_.push_back(line); }

 private:
  const NodeProto& message_;
  std::vector<const Value*> inputs_;
  std::vector<bool> wanted_;
  std::vector<Value> outputs_;
  mutable std::map<int, Value> in_order_;  // inputs that the graph sees transposed
  NetWriter& net_;
  std::vector<std::string>& notices_;
  std::string name_;
};

// A value of an option of windows or axes as Caffe's files have it. Throws UserError naming `what`.
uint32_t window_option(const std::string& what, int64_t value, int64_t least);
// A number of an option. Throws UserError where it is infinite or not a number, which no file of Caffe has.
float number_option(double value);
// The axis counted from the front. Throws UserError.
int axis_of(int64_t axis, int rank);
// Input `i` or, in older opsets, attribute `name`; absent: neither.
std::optional<std::vector<int64_t>> integers_of(const Node& node, int i, const std::string& name);

// What a Slice takes: an entry for each of its axes. Throws UserError.
struct SliceRanges {
  std::vector<int64_t> starts, ends, axes, steps;
};
SliceRanges slice_ranges(const Node& node);

caffe::LayerParameter layer_of_type(const std::string& type);
Blob blob_of(const Constant& constant, const Shape& shape);

}  // namespace cortado::onnx
