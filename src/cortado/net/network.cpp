#include "cortado/net/network.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/net/gradients.h"

namespace cortado {
namespace {

// Elements of the largest tensor: far beyond any memory, far below where index arithmetic overflows.
constexpr int64_t max_elements = int64_t{1} << 40;

std::string layer_text(const LayerDeclaration& layer) {
  return fmt::format("{}: layer '{}'", layer.where.text(), layer.name);
}

bool makes(const LayerDeclaration& layer, const std::string& blob) {
  return std::ranges::find(layer.tops, blob) != layer.tops.end() &&
         std::ranges::find(layer.bottoms, blob) == layer.bottoms.end();
}

// Why layer `reader` cannot read `blob`, which no layer before it makes.
class MissingBlob {
 public:
  MissingBlob(const std::vector<LayerDeclaration>& layers, size_t reader, const std::string& blob)
      : layers_(layers), reader_(reader), blob_(blob) {}

  std::string text() const {
    std::string start = fmt::format("{} reads blob '{}'", layer_text(layers_[reader_]), blob_);
    for (size_t maker = reader_; maker < layers_.size(); ++maker) {
      if (!makes(layers_[maker], blob_)) continue;
      const LayerDeclaration& layer = layers_[maker];
      if (reaches(maker)) {
        return fmt::format(
            "{} that only layer '{}' (line {}), which depends on '{}', makes: the net is cyclic", start,
            layer.name, layer.where.line, layers_[reader_].name);
      }
      return fmt::format("{} before layer '{}' (line {}) makes it; move that layer up", start, layer.name,
                         layer.where.line);
    }
    std::vector<std::string_view> known;
    for (size_t i = 0; i < reader_; ++i)
      known.insert(known.end(), layers_[i].tops.begin(), layers_[i].tops.end());
    return fmt::format("{} that no layer makes{}", start, did_you_mean(blob_, known));
  }

 private:
  // Whether layer `from` needs, directly or through others, what layer reader_ makes.
  bool reaches(size_t from) const {
    std::set<size_t> seen{from};
    std::vector<size_t> open{from};
    while (!open.empty()) {
      size_t layer = open.back();
      open.pop_back();
      if (layer == reader_) return true;
      for (size_t maker = 0; maker < layers_.size(); ++maker) {
        bool feeds = std::ranges::any_of(
            layers_[layer].bottoms, [&](const std::string& blob) { return makes(layers_[maker], blob); });
        if (feeds && seen.insert(maker).second) open.push_back(maker);
      }
    }
    return false;
  }

  const std::vector<LayerDeclaration>& layers_;
  size_t reader_;
  const std::string& blob_;
};

// Adds layers one by one, in order; names become indices.
class NetworkBuilder {
 public:
  NetworkBuilder(const std::vector<LayerDeclaration>& layers, const Network::SourceShapes& source_shapes)
      : layers_(layers), source_shapes_(source_shapes) {}

  void add(size_t index) {
    const LayerDeclaration& layer = layers_[index];
    Network::Node node;
    node.name = layer.name;
    node.layer = layer.layer;
    node.where = layer.where;
    auto [known, is_new] = node_named_.emplace(layer.name, index);
    if (!is_new) {
      throw UserError(fmt::format("{} has the name of the layer of line {}; name it otherwise",
                                  layer_text(layer), layers_[known->second].where.line));
    }
    connect_inputs(index, node);
    std::vector<Shape> inputs;
    for (int input : node.inputs) inputs.push_back(tensors[input].shape);
    std::vector<std::string> tops = layer.tops;
    if (tops.empty() && layer.layer->default_loss_weight(0) != 0) tops.push_back(layer.name);
    std::vector<ParameterSpec> specs;
    std::vector<Shape> outputs = shapes(layer, inputs, static_cast<int>(tops.size()), specs);
    make_outputs(layer, tops, outputs, node);
    set_loss_weights(layer, node);
    add_parameters(layer, specs, node);
    nodes.push_back(std::move(node));
  }

  std::vector<Network::Node> nodes;
  std::vector<Network::Tensor> tensors;
  std::vector<Network::Parameter> parameters;

 private:
  int here() const { return static_cast<int>(nodes.size()); }

  void connect_inputs(size_t index, Network::Node& node) {
    for (const std::string& bottom : layers_[index].bottoms) {
      auto found = tensor_named_.find(bottom);
      if (found == tensor_named_.end()) throw UserError(MissingBlob(layers_, index, bottom).text());
      node.inputs.push_back(found->second);
      tensors[found->second].consumers.push_back(here());
    }
  }

  // The shapes of the outputs, and the parameters; complaints get the layer's place and what it reads.
  std::vector<Shape> shapes(const LayerDeclaration& layer, const std::vector<Shape>& inputs, int output_count,
                            std::vector<ParameterSpec>& specs) const {
    std::vector<Shape> outputs;
    try {
      outputs =
          layer.layer->is_source() ? source_shapes_(layer) : layer.layer->output_shapes(inputs, output_count);
      specs = layer.layer->parameters(inputs);
      check_count("tops", static_cast<size_t>(output_count), static_cast<int>(outputs.size()),
                  static_cast<int>(outputs.size()));
      for (const Shape& shape : outputs) check_extent("its output", shape);
      for (const ParameterSpec& spec : specs) check_extent(spec.role, spec.shape);
    } catch (const UserError& error) {
      throw UserError(fmt::format("{} ({}): {}{}", layer_text(layer), layer.layer->type(), error.what(),
                                  inputs_text(layer, inputs)));
    }
    return outputs;
  }

  static void check_extent(std::string_view what, const Shape& shape) {
    int64_t elements = shape.size();
    if (elements == 0) throw UserError(fmt::format("{} of shape {} has no elements", what, shape.text()));
    if (elements > max_elements)
      throw UserError(fmt::format("{} of shape {} is too large", what, shape.text()));
  }

  // "; it reads 'conv1' of 64x96x55x55 (layer 'conv1', line 12)"
  std::string inputs_text(const LayerDeclaration& layer, const std::vector<Shape>& inputs) const {
    std::vector<std::string> texts;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Network::Node& producer = nodes[tensors[tensor_named_.at(layer.bottoms[i])].producer];
      texts.push_back(fmt::format("'{}' of {} (layer '{}', line {})", layer.bottoms[i], inputs[i].text(),
                                  producer.name, producer.where.line));
    }
    return texts.empty() ? "" : fmt::format("; it reads {}", fmt::join(texts, ", "));
  }

  void make_outputs(const LayerDeclaration& layer, const std::vector<std::string>& tops,
                    const std::vector<Shape>& outputs, Network::Node& node) {
    for (size_t i = 0; i < tops.size(); ++i) {
      auto earlier = tensor_named_.find(tops[i]);
      bool in_place = i < layer.bottoms.size() && layer.bottoms[i] == tops[i];
      if (earlier != tensor_named_.end() && (!in_place || tensors[earlier->second].producer == here())) {
        throw UserError(fmt::format(
            "{} makes blob '{}', which {} (line {}) makes as well; name one otherwise", layer_text(layer),
            tops[i], maker_text(earlier->second), maker_line(earlier->second, layer)));
      }
      node.outputs.push_back(static_cast<int>(tensors.size()));
      tensor_named_[tops[i]] = static_cast<int>(tensors.size());
      tensors.push_back({.name = tops[i],
                         .shape = outputs[i],
                         .producer = here(),
                         .producer_output = static_cast<int>(i),
                         .consumers = {},
                         .needs_gradient = false});
    }
  }

  std::string maker_text(int tensor) const {
    int producer = tensors[tensor].producer;
    return producer < here() ? fmt::format("layer '{}'", nodes[producer].name) : "the same layer";
  }
  int maker_line(int tensor, const LayerDeclaration& layer) const {
    int producer = tensors[tensor].producer;
    return producer < here() ? nodes[producer].where.line : layer.where.line;
  }

  static void set_loss_weights(const LayerDeclaration& layer, Network::Node& node) {
    if (!layer.loss_weights.empty() && layer.loss_weights.size() != node.outputs.size()) {
      throw UserError(fmt::format("{} has {} loss_weight for {} tops; give none or one for each",
                                  layer_text(layer), layer.loss_weights.size(), node.outputs.size()));
    }
    node.loss_weights = layer.loss_weights;
    for (size_t i = node.loss_weights.size(); i < node.outputs.size(); ++i) {
      node.loss_weights.push_back(layer.layer->default_loss_weight(static_cast<int>(i)));
    }
    if (!layer.propagate_down.empty() && layer.propagate_down.size() != layer.bottoms.size()) {
      throw UserError(fmt::format("{} has {} propagate_down for {} bottoms; give none or one for each",
                                  layer_text(layer), layer.propagate_down.size(), layer.bottoms.size()));
    }
  }

  void add_parameters(const LayerDeclaration& layer, std::vector<ParameterSpec>& specs, Network::Node& node) {
    if (layer.parameters.size() > specs.size()) {
      throw UserError(fmt::format("{} has {} param but {} parameters; remove the others", layer_text(layer),
                                  layer.parameters.size(), specs.size()));
    }
    for (size_t i = 0; i < specs.size(); ++i) {
      LayerDeclaration::Parameter declared =
          i < layer.parameters.size() ? layer.parameters[i] : LayerDeclaration::Parameter{};
      auto shared = parameter_named_.find(declared.shared_name);
      if (!declared.shared_name.empty() && shared != parameter_named_.end()) {
        share(layer, specs[i], declared, parameters[shared->second]);
        node.parameters.push_back(shared->second);
        continue;
      }
      int index = static_cast<int>(parameters.size());
      if (!declared.shared_name.empty()) parameter_named_[declared.shared_name] = index;
      std::string name = declared.shared_name.empty() ? fmt::format("{}/{}", layer.name, specs[i].role)
                                                      : declared.shared_name;
      node.parameters.push_back(index);
      parameters.push_back({.name = std::move(name),
                            .spec = std::move(specs[i]),
                            .lr_mult = declared.lr_mult,
                            .decay_mult = declared.decay_mult,
                            .owner = here(),
                            .users = {here()},
                            .wants_gradient = false});
    }
  }

  // Makes `layer` a user of a parameter that an earlier layer owns. A multiplier of 1 counts as not given.
  void share(const LayerDeclaration& layer, const ParameterSpec& spec,
             const LayerDeclaration::Parameter& declared, Network::Parameter& parameter) const {
    std::string owner = parameter.owner < here() ? nodes[parameter.owner].name : layer.name;
    bool fits = declared.permissive ? spec.shape.size() == parameter.spec.shape.size()
                                    : spec.shape == parameter.spec.shape;
    if (!fits) {
      throw UserError(fmt::format(
          "{} shares parameter '{}' of layer '{}' but needs the shape {} instead of {}", layer_text(layer),
          parameter.name, owner, spec.shape.text(), parameter.spec.shape.text()));
    }
    merge_multiplier(layer, parameter.name, "lr_mult", declared.lr_mult, parameter.lr_mult);
    merge_multiplier(layer, parameter.name, "decay_mult", declared.decay_mult, parameter.decay_mult);
    if (parameter.users.back() != here()) parameter.users.push_back(here());
  }

  static void merge_multiplier(const LayerDeclaration& layer, const std::string& parameter, const char* field,
                               double declared, double& value) {
    if (declared == 1 || declared == value) return;
    if (value != 1) {
      throw UserError(
          fmt::format("{} gives shared parameter '{}' the {} {}, another layer {}; give one value",
                      layer_text(layer), parameter, field, declared, value));
    }
    value = declared;
  }

  const std::vector<LayerDeclaration>& layers_;
  const Network::SourceShapes& source_shapes_;
  std::map<std::string, size_t> node_named_;    // index of the declaration
  std::map<std::string, int> tensor_named_;     // the latest tensor of that name
  std::map<std::string, int> parameter_named_;  // shared ones
};

}  // namespace

std::string SourceLocation::text() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

Network Network::build(std::string name, Phase phase, const std::vector<LayerDeclaration>& layers,
                       const SourceShapes& source_shapes) {
  NetworkBuilder builder(layers, source_shapes);
  std::vector<std::vector<std::optional<bool>>> propagate_down;
  for (size_t i = 0; i < layers.size(); ++i) {
    builder.add(i);
    propagate_down.push_back(layers[i].propagate_down);
  }
  if (phase == Phase::train) {
    decide_gradients(builder.nodes, builder.tensors, builder.parameters, propagate_down);
  } else {
    for (Node& node : builder.nodes) node.propagate_down.assign(node.inputs.size(), false);
  }
  Network network;
  network.name_ = std::move(name);
  network.phase_ = phase;
  network.nodes_ = std::move(builder.nodes);
  network.tensors_ = std::move(builder.tensors);
  network.parameters_ = std::move(builder.parameters);
  return network;
}

std::vector<int> Network::outputs() const {
  std::vector<int> unread;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].consumers.empty()) unread.push_back(static_cast<int>(t));
  }
  return unread;
}

int Network::tensor(const std::string& name) const {
  auto found = std::ranges::find(tensors_.rbegin(), tensors_.rend(), name, &Tensor::name);
  return static_cast<int>(tensors_.rend() - found) - 1;
}

int Network::node(const std::string& name) const {
  auto found = std::ranges::find(nodes_, name, &Node::name);
  return found == nodes_.end() ? -1 : static_cast<int>(found - nodes_.begin());
}

int64_t Network::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec.learnable) count += parameter.spec.shape.size();
  }
  return count;
}

Flops Network::forward_flops(int node) const {
  std::vector<Shape> inputs, outputs;
  for (int t : nodes_[node].inputs) inputs.push_back(tensors_[t].shape);
  for (int t : nodes_[node].outputs) outputs.push_back(tensors_[t].shape);
  return nodes_[node].layer->forward_flops(inputs, outputs);
}

}  // namespace cortado
