#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cortado/net/blob.h"
#include "cortado/net/weights.h"
#include "cortado/onnx/read/value.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado::onnx {

// The Caffe net that a graph becomes, layer by layer. Each layer's blobs have the layer's name.
class NetWriter {
 public:
  // Adds a layer `layer` (its type and options) with `inputs` and parameters `blobs`; its name is `name`, or
  // that with a number where it is taken. Returns its outputs. Throws UserError where the layer does not take
  // such inputs.
  std::vector<Value> add(caffe::LayerParameter layer, const std::string& name,
                         const std::vector<Value>& inputs, std::vector<Blob> blobs = {}, int outputs = 1);
  // An input of the net.
  Value add_input(const std::string& name, const Shape& shape);
  // Gives the layer that makes `value`, which has one weight, a bias. `bias`: a value per output channel.
  void add_bias(const Value& value, Blob bias);
  // Whether that layer can take one: it has none, its channels are on axis 1, and nothing else reads the
  // value.
  bool takes_bias(const Value& value) const;

  // Makes a Swish of the Sigmoid layer that computes `gate` of `value`, and nothing else reads. False: it is
  // none.
  bool make_swish(const Value& gate, const Value& value);

  // The value with its axes in the graph's order: itself, or what a Permute makes of it.
  Value in_order(const Value& value);
  // The name of a blob that holds the value as the graph sees it: its own, or that of a Permute or Reshape.
  // Throws UserError when a padding lies between that no layer has.
  std::string blob_of(const Value& value);
  // Calls the blobs that hold outputs of the graph by the graph's names. Two outputs of one blob become two
  // blobs, so does an input that is an output; a name that no file may have stays out.
  void name_outputs(const std::vector<std::pair<std::string, Value>>& outputs);

  caffe::NetParameter& net() { return net_; }
  Weights& weights() { return weights_; }

  int64_t weight_values() const { return weight_values_; }  // numbers in all parameters

 private:
  int64_t weight_values_ = 0;
  std::string unused_name(const std::string& wish);
  // The blob of another layer that holds the same.
  std::string add_copy(const Value& value, const std::string& name);

  caffe::NetParameter net_;
  Weights weights_;
  std::map<int, size_t> weights_of_layer_;  // by the layer's place in the net
  std::set<std::string> names_;             // of layers and blobs
  std::map<std::string, int> next_number_;
  std::map<std::pair<std::string, std::string>, std::string> reshaped_;  // by blob and shape's text
  std::map<std::pair<std::string, std::vector<int>>, Value> permuted_;   // by blob and order
};

// A parameter that training does not change.
void freeze(caffe::LayerParameter& layer, int parameters);

}  // namespace cortado::onnx
