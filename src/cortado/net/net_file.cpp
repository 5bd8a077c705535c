#include "cortado/net/net_file.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/layers/source.h"
#include "cortado/net/filter.h"
#include "cortado/net/from_caffe.h"
#include "cortado/net/text_format.h"
#include "cortado/net/upgrade.h"

namespace cortado {

NetFile parse_net(std::string_view text, const std::string& path) {
  NetFile file{path, {}, {}};
  TextLocations locations;
  parse_text(text, path, file.net, &locations);
  bool newest = file.net.layers_size() == 0;
  int layers = newest ? file.net.layer_size() : file.net.layers_size();
  for (int i = 0; i < layers; ++i) {
    file.layer_lines.push_back(line_of(locations, file.net, newest ? "layer" : "layers", i));
  }
  bool has_inputs = file.net.input_size() > 0;
  upgrade_net(file.net, file.layer_lines, path);
  if (has_inputs) file.layer_lines[0] = line_of(locations, file.net, "input", 0);
  return file;
}

NetFile read_net(const std::string& path) { return parse_net(read_file(path), path); }

NetFile net_of_message(caffe::NetParameter net, const std::string& path) {
  NetFile file{path, std::move(net), {}};
  file.layer_lines.assign(static_cast<size_t>(file.net.layer_size() + file.net.layers_size()), 0);
  upgrade_net(file.net, file.layer_lines, path);
  return file;
}

DeclaredNet declare_net(const NetFile& file, const caffe::NetState& state) {
  NetFile kept = filter_net(file, state);
  DeclaredNet declared;
  for (int i = 0; i < kept.net.layer_size(); ++i) {
    caffe::LayerParameter& layer = *kept.net.mutable_layer(i);
    if (layer.name().empty()) layer.set_name(fmt::format("{}{}", layer.type(), i));
    layer.set_phase(state.phase());
    declared.layers.push_back(declare_layer(layer, kept.where(i)));
    if (file.net.force_backward()) force_backward(declared.layers.back());
  }
  declared.net = std::move(kept.net);
  return declared;
}

LoadedNetwork load_network(const NetFile& file, const caffe::NetState& state,
                           const Network::SourceShapes& source_shapes) {
  DeclaredNet declared = declare_net(file, state);
  Phase phase = state.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  Network network = Network::build(file.net.name(), phase, declared.layers, source_shapes);
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
  if (options.shapes.empty()) {
    throw UserError(fmt::format("the shapes of a {} layer are only known to its data", source->type()));
  }
  if (options.kind != SourceOptions::Kind::memory_data) return options.shapes;
  Shape images{options.batch_size};
  for (int64_t extent : options.shapes[0].extents()) images.append(extent);
  return {images, Shape{options.batch_size}};
}

caffe::NetState net_state(Phase phase, int level, const std::vector<std::string>& stages) {
  caffe::NetState state;
  state.set_phase(phase == Phase::train ? caffe::TRAIN : caffe::TEST);
  state.set_level(level);
  for (const std::string& stage : stages) state.add_stage(stage);
  return state;
}

}  // namespace cortado
