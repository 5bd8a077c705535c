#include "cortado/net/read_net.h"

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/text_format.h"
#include "cortado/net/upgrade.h"
#include "cortado/net/without_effect.h"

namespace cortado {
namespace {

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

}  // namespace cortado
