#include "cortado/net/net_file.h"

#include <fmt/format.h>
#include <map>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/layers/source.h"
#include "cortado/net/filter.h"
#include "cortado/net/from_caffe.h"
#include "cortado/net/text_format.h"
#include "cortado/net/upgrade.h"
#include "cortado/net/without_effect.h"

namespace cortado {
namespace {

// Layers of a file may have one name, those of a network have not: the second "loss" is "loss#2".
class NodeNames {
 public:
  explicit NodeNames(const caffe::NetParameter& net) {
    for (const caffe::LayerParameter& layer : net.layer()) in_file_.insert(layer.name());
  }
  std::string next(const std::string& name) {
    if (given_.insert(name).second) return name;
    int& number = numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do numbered = fmt::format("{}#{}", name, ++number);
    while (in_file_.contains(numbered) || !given_.insert(numbered).second);
    return numbered;
  }

 private:
  std::set<std::string> in_file_, given_;
  std::map<std::string, int> numbers_;  // the last given to a layer of that name
};

void note_shapeless_inputs(NetFile& file) {
  if (file.net.input_shape_size() > 0 || file.net.input_dim_size() > 0) return;
  file.shapeless_inputs.assign(file.net.input().begin(), file.net.input().end());
}

void set_shapes(caffe::LayerParameter& input, const std::vector<Shape>& shapes) {
  for (const Shape& shape : shapes) {
    caffe::BlobShape& added = *input.mutable_input_param()->add_shape();
    for (int64_t extent : shape.extents()) added.add_dim(extent);
  }
}

}  // namespace

NetFile parse_net(std::string_view text, const std::string& path) {
  NetFile file{path, {}, {}};
  TextLocations locations;
  parse_text(text, path, file.net, &locations);
  bool newest = file.net.layers_size() == 0;
  int layers = newest ? file.net.layer_size() : file.net.layers_size();
  for (int i = 0; i < layers; ++i) {
    file.layer_lines.push_back(line_of(locations, file.net, newest ? "layer" : "layers", i));
  }
  note_shapeless_inputs(file);
  const bool has_inputs = file.net.input_size() > 0 && file.shapeless_inputs.empty();
  upgrade_net(file.net, file.layer_lines, path);
  if (has_inputs) file.layer_lines[0] = line_of(locations, file.net, "input", 0);
  file.warnings = fields_without_effect(file);
  return file;
}

NetFile read_net(const std::string& path) { return parse_net(read_file(path), path); }

NetFile net_of_message(caffe::NetParameter net, const std::string& path) {
  NetFile file{path, std::move(net), {}};
  file.layer_lines.assign(static_cast<size_t>(file.net.layer_size() + file.net.layers_size()), 0);
  note_shapeless_inputs(file);
  upgrade_net(file.net, file.layer_lines, path);
  file.warnings = fields_without_effect(file);
  return file;
}

void give_input_shapes(NetFile& file, const std::function<std::vector<Shape>(size_t blobs)>& shapes) {
  for (caffe::LayerParameter& layer : *file.net.mutable_layer()) {
    if (layer.type() != "Input" || layer.input_param().shape_size() > 0 || layer.top_size() == 0) continue;
    set_shapes(layer, shapes(static_cast<size_t>(layer.top_size())));
  }
  if (file.shapeless_inputs.empty()) return;
  caffe::LayerParameter& input = add_input_layer(file.net, file.layer_lines);
  for (const std::string& blob : file.shapeless_inputs) input.add_top(blob);
  set_shapes(input, shapes(file.shapeless_inputs.size()));
  file.shapeless_inputs.clear();
}

DeclaredNet declare_net(const NetFile& file, const caffe::NetState& state) {
  if (!file.shapeless_inputs.empty()) {
    throw UserError(
        fmt::format("{}: input '{}' has no shape; add input_shape {{ dim: ... }}, or give --input-shape to a "
                    "command that takes it",
                    file.path, file.shapeless_inputs.front()));
  }
  if (file.net.layer_size() == 0)
    throw UserError(fmt::format("{}: there is no layer in it; give the file of a net", file.path));
  NetFile kept = filter_net(file, state);
  if (kept.net.layer_size() == 0)
    throw UserError(
        fmt::format("{}: none of its layers is of phase {} and its level and stages; change their "
                    "include and exclude, or give --phase, --level or --stage",
                    file.path, state.phase() == caffe::TRAIN ? "TRAIN" : "TEST"));
  DeclaredNet declared;
  NodeNames names(kept.net);
  for (int i = 0; i < kept.net.layer_size(); ++i) {
    caffe::LayerParameter& layer = *kept.net.mutable_layer(i);
    if (layer.name().empty()) layer.set_name(fmt::format("{}{}", layer.type(), i));
    if (!layer.has_phase()) layer.set_phase(state.phase());
    declared.layers.push_back(declare_layer(layer, kept.where(i)));
    declared.layers.back().name = names.next(layer.name());
    if (file.net.force_backward()) force_backward(declared.layers.back());
  }
  declared.net = std::move(kept.net);
  return declared;
}

LoadedNetwork load_network(const NetFile& file, const caffe::NetState& state,
                           const Network::SourceShapes& source_shapes, std::optional<bool> learns) {
  DeclaredNet declared = declare_net(file, state);
  Phase phase = state.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  Network network = Network::build(file.net.name(), phase, declared.layers, source_shapes, learns);
  return {std::move(declared.net), std::move(network)};
}

void write_net(const std::string& path, const caffe::NetParameter& net) {
  caffe::NetParameter bare = net;
  for (caffe::LayerParameter& layer : *bare.mutable_layer()) layer.clear_blobs();
  write_text(path, bare);
}

std::vector<Shape> declared_source_shapes(const LayerDeclaration& layer) {
  const auto* source = dynamic_cast<const Source*>(layer.layer.get());
  ensure(source != nullptr, "declared_source_shapes is for source layers");
  const SourceOptions& options = source->options();
  if (options.shapes.empty() && options.kind == SourceOptions::Kind::input) {
    throw UserError(
        "it has no shape; add input_param { shape { dim: ... } }, or give --input-shape to a command that "
        "takes it");
  }
  if (options.shapes.empty()) {
    throw UserError(fmt::format("the shapes of a {} layer are only known to its data", source->type()));
  }
  if (options.kind != SourceOptions::Kind::memory_data) return options.shapes;
  Shape images{options.batch_size};
  for (int64_t extent : options.shapes[0].extents()) images.append(extent);
  return {images, Shape{options.batch_size}};
}

caffe::NetState net_state(Phase phase, int level, const std::vector<std::string>& stages) {
  return net_state(NetFile{}, phase, level, stages);
}

caffe::NetState net_state(const NetFile& file, Phase phase, int level,
                          const std::vector<std::string>& stages) {
  caffe::NetState state = file.net.state();
  state.set_phase(phase == Phase::train ? caffe::TRAIN : caffe::TEST);
  state.set_level(level);
  for (const std::string& stage : stages) state.add_stage(stage);
  return state;
}

}  // namespace cortado
