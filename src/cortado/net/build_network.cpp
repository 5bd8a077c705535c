#include "cortado/net/build_network.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <limits>
#include <set>

#include "cortado/base/error.h"
#include "cortado/net/convolution_parts.h"
#include "cortado/net/gradients.h"
#include "cortado/net/missing_blob.h"

namespace cortado {
namespace {

// Elements of the largest tensor: far beyond any memory, far below where index arithmetic overflows.
constexpr int64_t max_elements = int64_t{1} << 40;

// Adds layers one by one, in order; names become indices.
class NetworkBuilder {
 public:
  NetworkBuilder(Phase phase, const std::vector<LayerDeclaration>& layers,
                 const Network::SourceShapes& source_shapes)
      : phase_(phase), layers_(layers), source_shapes_(source_shapes) {}

  void add(size_t index) {
    const LayerDeclaration& layer = layers_[index];
    auto [known, is_new] = node_named_.emplace(layer.name, index);
    if (!is_new) {
      throw UserError(fmt::format("{} has the name of the layer of line {}; name it otherwise", layer.text(),
                                  layers_[known->second].where.line));
    }
    check_counts(layer);
    const std::vector<Shape> inputs = input_shapes(index);
    std::vector<LayerDeclaration> parts;
    complete(layer, inputs, [&] {
      parts =
          convolution_parts(layer, inputs, [&](std::string name) { return unused_name(std::move(name)); });
    });
    for (const LayerDeclaration& part : parts) add_node(part);
  }

  IndexedVector<NodeIndex, Network::Node> nodes;
  IndexedVector<TensorIndex, Network::Tensor> tensors;
  IndexedVector<ParameterIndex, Network::Parameter> parameters;
  IndexedVector<NodeIndex, std::vector<std::optional<bool>>> propagate_down;  // as declared

 private:
  NodeIndex here() const { return nodes.end_index(); }

  void add_node(const LayerDeclaration& layer) {
    Network::Node node;
    node.name = layer.name;
    node.file_name = layer.file_name.empty() ? layer.name : layer.file_name;
    node.part_of = layer.part_of;
    node.layer = layer.layer;
    node.phase = layer.phase.value_or(phase_);
    node.where = layer.where;
    std::vector<Shape> inputs;
    for (const std::string& bottom : layer.bottoms) {
      node.inputs.push_back(tensor_named_.at(bottom));
      tensors[node.inputs.back()].consumers.push_back(here());
      inputs.push_back(tensors[node.inputs.back()].shape);
    }
    const std::vector<std::string> tops = tops_of(layer);
    std::vector<ParameterSpec> specs;
    std::vector<Shape> outputs = shapes(layer, inputs, static_cast<int>(tops.size()), specs);
    make_outputs(layer, tops, outputs, node);
    node.loss_weights = layer.loss_weights;
    for (size_t i = node.loss_weights.size(); i < node.outputs.size(); ++i)
      node.loss_weights.push_back(layer.layer->default_loss_weight(static_cast<int>(i)));
    if (layer.part_of.empty() || specs.empty()) {
      add_parameters(layer, specs, node);
    } else {
      share_all(layer.part_of, node);
    }
    nodes.push_back(std::move(node));
    propagate_down.push_back(layer.propagate_down);
  }

  std::vector<Shape> input_shapes(size_t index) const {
    std::vector<Shape> inputs;
    for (const std::string& bottom : layers_[index].bottoms) {
      auto found = tensor_named_.find(bottom);
      if (found == tensor_named_.end()) throw UserError(missing_blob(layers_, index, bottom));
      inputs.push_back(tensors[found->second].shape);
    }
    return inputs;
  }

  // A name that no layer of the file and no blob has.
  std::string unused_name(std::string name) {
    if (names_.empty()) {
      for (const LayerDeclaration& layer : layers_) {
        names_.insert(layer.name);
        names_.insert(layer.tops.begin(), layer.tops.end());
      }
    }
    while (!names_.insert(name).second) name += "'";
    return name;
  }

  // Does `action`; its complaints get the layer's place and what it reads.
  void complete(const LayerDeclaration& layer, const std::vector<Shape>& inputs,
                const std::function<void()>& action) const {
    try {
      action();
    } catch (const UserError& error) {
      throw UserError(fmt::format("{} ({}): {}{}", layer.text(), layer.layer->type(), error.what(),
                                  inputs_text(layer, inputs)));
    }
  }

  // The shapes of the outputs, and the parameters.
  std::vector<Shape> shapes(const LayerDeclaration& layer, const std::vector<Shape>& inputs, int output_count,
                            std::vector<ParameterSpec>& specs) const {
    std::vector<Shape> outputs;
    complete(layer, inputs, [&] {
      outputs =
          layer.layer->is_source() ? source_shapes_(layer) : layer.layer->output_shapes(inputs, output_count);
      specs = layer.layer->parameters(inputs);
      check_count("tops", static_cast<size_t>(output_count), static_cast<int>(outputs.size()),
                  static_cast<int>(outputs.size()));
      for (const Shape& shape : outputs) check_extent("its output", shape);
      for (const ParameterSpec& spec : specs) check_extent(spec.role, spec.shape);
      if (!specs.empty() && !inputs.empty()) check_reads(*layer.layer, inputs, outputs);
    });
    return outputs;
  }

  static void check_extent(std::string_view what, const Shape& shape) {
    int64_t elements = shape.size();
    if (elements == 0) throw UserError(fmt::format("{} of shape {} has no elements", what, shape.text()));
    if (elements > max_elements)
      throw UserError(fmt::format("{} of shape {} is too large", what, shape.text()));
  }

  // A layer whose windows all lie in the padding would learn its bias alone.
  static void check_reads(const Layer& layer, const std::vector<Shape>& inputs,
                          const std::vector<Shape>& outputs) {
    const Box domain = Box::whole(layer.domain(inputs, outputs));
    if (layer.input_box(inputs, 0, 0, domain).empty())
      throw UserError("its windows read nothing but padding; use less padding or a larger kernel");
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
    const bool named = !layer.tops.empty();  // else only this layer knows its top
    for (size_t i = 0; i < tops.size(); ++i) {
      auto earlier = named ? tensor_named_.find(tops[i]) : tensor_named_.end();
      bool in_place = i < layer.bottoms.size() && layer.bottoms[i] == tops[i];
      if (earlier != tensor_named_.end() && (!in_place || tensors[earlier->second].producer == here())) {
        throw UserError(fmt::format(
            "{} makes blob '{}', which {} (line {}) makes as well; name one otherwise", layer.text(), tops[i],
            maker_text(earlier->second), maker_line(earlier->second, layer)));
      }
      node.outputs.push_back(tensors.end_index());
      if (named) tensor_named_[tops[i]] = tensors.end_index();
      tensors.push_back({.name = tops[i],
                         .named = named,
                         .shape = outputs[i],
                         .producer = here(),
                         .producer_output = static_cast<int>(i),
                         .consumers = {},
                         .needs_gradient = false});
    }
  }

  std::string maker_text(TensorIndex tensor) const {
    const NodeIndex producer = tensors[tensor].producer;
    return producer < here() ? fmt::format("layer '{}'", nodes[producer].name) : "the same layer";
  }
  int maker_line(TensorIndex tensor, const LayerDeclaration& layer) const {
    const NodeIndex producer = tensors[tensor].producer;
    return producer < here() ? nodes[producer].where.line : layer.where.line;
  }

  static std::vector<std::string> tops_of(const LayerDeclaration& layer) {
    const bool loss = layer.tops.empty() && layer.layer->default_loss_weight(0) != 0;
    return loss ? std::vector<std::string>{layer.name} : layer.tops;
  }

  static void check_counts(const LayerDeclaration& layer) {
    const size_t tops = tops_of(layer).size();
    if (!layer.loss_weights.empty() && layer.loss_weights.size() != tops) {
      throw UserError(fmt::format("{} has {} loss_weight for {} tops; give none or one for each",
                                  layer.text(), layer.loss_weights.size(), tops));
    }
    if (!layer.propagate_down.empty() && layer.propagate_down.size() != layer.bottoms.size()) {
      throw UserError(fmt::format("{} has {} propagate_down for {} bottoms; give none or one for each",
                                  layer.text(), layer.propagate_down.size(), layer.bottoms.size()));
    }
  }

  void add_parameters(const LayerDeclaration& layer, std::vector<ParameterSpec>& specs, Network::Node& node) {
    if (layer.parameters.size() > specs.size()) {
      throw UserError(fmt::format("{} has {} param but {} parameters; remove the others", layer.text(),
                                  layer.parameters.size(), specs.size()));
    }
    for (size_t i = 0; i < specs.size(); ++i) {
      LayerDeclaration::Parameter declared =
          i < layer.parameters.size() ? layer.parameters[i] : LayerDeclaration::Parameter{};
      node.parameter_shapes.push_back(specs[i].shape);
      auto shared = parameter_named_.find(declared.shared_name);
      if (!declared.shared_name.empty() && shared != parameter_named_.end()) {
        share(layer, specs[i], declared, parameters[shared->second]);
        node.parameters.push_back(shared->second);
        continue;
      }
      const ParameterIndex index = parameters.end_index();
      if (!declared.shared_name.empty()) parameter_named_[declared.shared_name] = index;
      std::string name = declared.shared_name.empty() ? fmt::format("{}/{}", layer.name, specs[i].role)
                                                      : declared.shared_name;
      while (!parameter_names_.insert(name).second) name += "#";
      node.parameters.push_back(index);
      parameters.push_back({.name = std::move(name),
                            .spec = std::move(specs[i]),
                            .lr_mult = declared.lr_mult,
                            .decay_mult = declared.decay_mult,
                            .declared_by = here(),
                            .users = {here()},
                            .one_shape = true,
                            .wants_gradient = false});
    }
  }

  // Makes `node` a user of all parameters of the node that it computes a part of.
  void share_all(const std::string& name, Network::Node& node) {
    // No view: clang 14, which compiles the fuzzers, has trouble with libstdc++'s.
    const auto whole =
        std::find_if(std::make_reverse_iterator(nodes.end()), std::make_reverse_iterator(nodes.begin()),
                     [&](const Network::Node& other) { return other.name == name; });
    node.parameters = whole->parameters;
    node.parameter_shapes = whole->parameter_shapes;
    for (ParameterIndex parameter : node.parameters) parameters[parameter].users.push_back(here());
  }

  // Makes `layer` a user of a parameter of an earlier layer. A multiplier of 1 counts as not given.
  void share(const LayerDeclaration& layer, const ParameterSpec& spec,
             const LayerDeclaration::Parameter& declared, Network::Parameter& parameter) const {
    std::string declaring = parameter.declared_by < here() ? nodes[parameter.declared_by].name : layer.name;
    bool fits = declared.permissive ? spec.shape.size() == parameter.spec.shape.size()
                                    : spec.shape == parameter.spec.shape;
    if (!fits) {
      throw UserError(fmt::format(
          "{} shares parameter '{}' of layer '{}' but needs the shape {} instead of {}", layer.text(),
          parameter.name, declaring, spec.shape.text(), parameter.spec.shape.text()));
    }
    merge_multiplier(layer, parameter.name, "lr_mult", declared.lr_mult, parameter.lr_mult);
    merge_multiplier(layer, parameter.name, "decay_mult", declared.decay_mult, parameter.decay_mult);
    if (parameter.users.back() != here()) parameter.users.push_back(here());
    parameter.one_shape = parameter.one_shape && spec.shape == parameter.spec.shape;
  }

  static void merge_multiplier(const LayerDeclaration& layer, const std::string& parameter, const char* field,
                               double declared, double& value) {
    if (declared == 1 || declared == value) return;
    if (value != 1) {
      throw UserError(
          fmt::format("{} gives shared parameter '{}' the {} {}, another layer {}; give one value",
                      layer.text(), parameter, field, declared, value));
    }
    value = declared;
  }

  const Phase phase_;
  const std::vector<LayerDeclaration>& layers_;
  const Network::SourceShapes& source_shapes_;
  std::map<std::string, size_t> node_named_;               // index of the declaration
  std::map<std::string, TensorIndex> tensor_named_;        // the latest tensor of that name
  std::map<std::string, ParameterIndex> parameter_named_;  // shared ones
  std::set<std::string> parameter_names_;                  // of all
  std::set<std::string> names_;                            // of the file's layers and blobs, and of parts
};

}  // namespace

Network build_network(std::string name, Phase phase, const std::vector<LayerDeclaration>& layers,
                      const Network::SourceShapes& source_shapes, std::optional<bool> learns,
                      bool gradients_from_outputs) {
  NetworkBuilder builder(phase, layers, source_shapes);
  for (size_t i = 0; i < layers.size(); ++i) builder.add(i);
  const bool gradients = learns.value_or(phase == Phase::train);
  if (gradients) {
    decide_gradients(builder.nodes, builder.tensors, builder.parameters, builder.propagate_down,
                     gradients_from_outputs);
  } else {
    for (Network::Node& node : builder.nodes) node.propagate_down.assign(node.inputs.size(), false);
  }
  return {std::move(name), gradients, std::move(builder.nodes), std::move(builder.tensors),
          std::move(builder.parameters)};
}

}  // namespace cortado
