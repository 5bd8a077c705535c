#include "cortado/onnx/read/net_writer.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/net/from_caffe.h"

namespace cortado::onnx {
namespace {

// Elements of the largest tensor, as a network has (net/build_network.cpp).
constexpr int64_t most_elements = int64_t{1} << 40;

void check_elements(const Shape& shape) {
  if (shape.size() > most_elements)
    throw UserError(
        fmt::format("a tensor of shape {} has more than {} elements", shape.text(), most_elements));
}

// What a file can call a layer; names of models may be anything.
std::string legal_name(std::string name) {
  constexpr size_t longest = 200;
  name = printable(name);
  if (name.size() > longest) name = name.substr(name.size() - longest);
  name = printable(name);
  return name.empty() ? "layer" : name;
}

void check_parameters(const Layer& layer, std::span<const Shape> inputs, const std::vector<Blob>& blobs) {
  const std::vector<ParameterSpec> specs = layer.parameters(inputs);
  if (specs.size() != blobs.size())
    throw UserError(
        fmt::format("has {} weights, a {} layer has {}", blobs.size(), layer.type(), specs.size()));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].shape != blobs[i].shape)
      throw UserError(fmt::format("the {} is of shape {}; inputs of these shapes need {}", specs[i].role,
                                  blobs[i].shape.text(), specs[i].shape.text()));
  }
}

// The options of a layer that makes `shape` of `from`; its batch size stays open.
caffe::LayerParameter reshape_layer(const Shape& from, const Shape& shape) {
  caffe::LayerParameter layer;
  const bool same_samples = from.rank() > 0 && shape.rank() > 0 && from[0] == shape[0];
  if (same_samples && from.rank() > 2 && shape.rank() == 2) {
    layer.set_type("Flatten");
    return layer;
  }
  layer.set_type("Reshape");
  caffe::BlobShape& target = *layer.mutable_reshape_param()->mutable_shape();
  for (int axis = 0; axis < shape.rank(); ++axis) target.add_dim(axis == 0 && same_samples ? 0 : shape[axis]);
  return layer;
}

}  // namespace

void freeze(caffe::LayerParameter& layer, int parameters) {
  for (int i = 0; i < parameters; ++i) {
    caffe::ParamSpec& spec = *layer.add_param();
    spec.set_lr_mult(0);
    spec.set_decay_mult(0);
  }
}

std::string NetWriter::unused_name(const std::string& wish) {
  const std::string base = legal_name(wish);
  std::string name = base;
  while (names_.contains(name)) name = fmt::format("{}_{}", base, ++next_number_[base]);
  names_.insert(name);
  return name;
}

std::vector<Value> NetWriter::add(caffe::LayerParameter layer, const std::string& name,
                                  const std::vector<Value>& inputs, std::vector<Blob> blobs, int outputs) {
  std::vector<Shape> shapes;
  for (const Value& input : inputs) {
    layer.add_bottom(blob_of(input));
    shapes.push_back(input.seen());
  }
  layer.set_name(unused_name(name));
  if (outputs > 0) layer.add_top(layer.name());
  for (int i = 1; i < outputs; ++i) layer.add_top(unused_name(fmt::format("{}/{}", layer.name(), i)));
  const LayerDeclaration declared = declare_layer(layer, {"ONNX", 0});
  const std::vector<Shape> made = declared.layer->output_shapes(shapes, outputs);
  check_parameters(*declared.layer, shapes, blobs);
  std::vector<Value> values;
  for (int i = 0; i < outputs; ++i) {
    const Shape& shape = made[static_cast<size_t>(i)];
    check_elements(shape);
    Value& value = values.emplace_back();
    value.blob = layer.top(i);
    value.blob_shape = value.shape = shape;
    value.layer = net_.layer_size();
  }
  if (!blobs.empty()) {
    for (const Blob& blob : blobs) weight_values_ += blob.shape.size();
    weights_of_layer_[net_.layer_size()] = weights_.size();
    weights_.push_back({layer.name(), std::move(blobs)});
  }
  *net_.add_layer() = std::move(layer);
  return values;
}

Value NetWriter::add_input(const std::string& name, const Shape& shape) {
  check_elements(shape);
  caffe::LayerParameter layer;
  layer.set_type("Input");
  caffe::BlobShape& extents = *layer.mutable_input_param()->add_shape();
  for (int64_t extent : shape.extents()) extents.add_dim(extent);
  layer.set_name(unused_name(name));
  layer.add_top(layer.name());
  Value value;
  value.blob = layer.name();
  value.blob_shape = value.shape = shape;
  value.layer = net_.layer_size();
  *net_.add_layer() = std::move(layer);
  return value;
}

bool NetWriter::takes_bias(const Value& value) const {
  if (value.layer < 0 || value.shared || value.shape != value.blob_shape || !value.order.empty() ||
      !value.pads.empty())
    return false;
  const caffe::LayerParameter& layer = net_.layer(value.layer);
  if (layer.type() == "InnerProduct")
    return !layer.inner_product_param().bias_term() && layer.inner_product_param().axis() == 1;
  if (layer.type() == "Convolution" || layer.type() == "Deconvolution")
    return !layer.convolution_param().bias_term() && layer.param_size() == 0;
  return false;
}

void NetWriter::add_bias(const Value& value, Blob bias) {
  caffe::LayerParameter& layer = *net_.mutable_layer(value.layer);
  if (layer.type() == "InnerProduct") {
    layer.mutable_inner_product_param()->clear_bias_term();
  } else {
    layer.mutable_convolution_param()->clear_bias_term();
  }
  weights_[weights_of_layer_.at(value.layer)].blobs.push_back(std::move(bias));
}

bool NetWriter::make_swish(const Value& gate, const Value& value) {
  const bool is_plain = gate.shape == gate.blob_shape && gate.order.empty() && gate.pads.empty();
  if (gate.layer < 0 || gate.shared || !is_plain) return false;
  caffe::LayerParameter& layer = *net_.mutable_layer(gate.layer);
  if (layer.type() != "Sigmoid" || value.shape != gate.shape || layer.bottom(0) != blob_of(value))
    return false;
  layer.set_type("Swish");
  return true;
}

Value NetWriter::in_order(const Value& value) {
  if (value.order.empty()) return value;
  Value unordered = value;
  unordered.order.clear();
  const std::string blob = blob_of(unordered);
  const auto known = permuted_.find({blob, value.order});
  if (known != permuted_.end()) return known->second;
  caffe::LayerParameter layer;
  layer.set_type("Permute");
  for (const int axis : value.order) layer.mutable_permute_param()->add_order(static_cast<uint32_t>(axis));
  Value result = add(std::move(layer), blob + "/permuted", {unordered})[0];
  result.not_negative = value.not_negative;
  return permuted_.emplace(std::pair(blob, value.order), result).first->second;
}

std::string NetWriter::blob_of(const Value& value) {
  ensure(!value.constant, "a constant has no blob");
  if (!value.order.empty()) return blob_of(in_order(value));
  if (!value.pads.empty())
    throw UserError(
        "its input is padded by a Pad, which only Conv, MaxPool and AveragePool take; export the padding as "
        "an attribute of a convolution");
  if (value.shape == value.blob_shape) return value.blob;
  std::string& known = reshaped_[{value.blob, value.shape.text()}];
  if (!known.empty()) return known;
  Value whole = value;
  whole.shape = whole.blob_shape;
  caffe::LayerParameter layer = reshape_layer(value.blob_shape, value.shape);
  const std::string kind = layer.type() == "Flatten" ? "flat" : "reshaped";
  known = add(std::move(layer), fmt::format("{}/{}", value.blob, kind), {whole})[0].blob;
  return known;
}

void NetWriter::name_outputs(const std::vector<std::pair<std::string, Value>>& outputs) {
  std::map<std::string, std::string> renamed;  // blobs
  std::set<std::string> given;
  for (const auto& [name, value] : outputs) {
    if (legal_name(name) != name || !given.insert(name).second) continue;
    std::string blob = blob_of(value);
    const bool is_input = net_.layer(value.layer).type() == "Input" && net_.layer(value.layer).top(0) == blob;
    if (is_input || renamed.contains(blob)) blob = add_copy(value, name);
    renamed[blob] = name;
  }
  const auto name_of = [&](const std::string& blob) {
    const auto found = renamed.find(blob);
    if (found != renamed.end()) return found->second;
    return given.contains(blob) ? renamed[blob] = unused_name(blob) : blob;
  };
  for (caffe::LayerParameter& layer : *net_.mutable_layer()) {
    for (std::string& bottom : *layer.mutable_bottom()) bottom = name_of(bottom);
    for (std::string& top : *layer.mutable_top()) top = name_of(top);
  }
}

std::string NetWriter::add_copy(const Value& value, const std::string& name) {
  caffe::LayerParameter layer;
  layer.set_type("Split");
  return add(std::move(layer), name, {value})[0].blob;
}

}  // namespace cortado::onnx
