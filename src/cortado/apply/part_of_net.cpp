#include "cortado/apply/part_of_net.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/net/declare_net.h"

namespace cortado {
namespace {

// The net of one state, all layers named, with their lines.
NetFile net_in(const NetFile& file, const caffe::NetState& state) {
  DeclaredNet declared = declare_net(file, state);
  NetFile net{
      .path = file.path, .net = std::move(declared.net), .layer_lines = {}, .precision = file.precision};
  for (const LayerDeclaration& layer : declared.layers) net.layer_lines.push_back(layer.where.line);
  return net;
}

// A layer Parameter reads nothing either, but brings no samples in.
bool is_source(const caffe::LayerParameter& layer) {
  return layer.bottom_size() == 0 && layer.type() != "Parameter";
}

bool makes(const caffe::LayerParameter& layer, const std::string& blob) {
  return std::ranges::find(layer.top(), blob) != layer.top().end();
}

void check_blob(const NetFile& net, const std::string& blob) {
  std::vector<std::string_view> known;
  for (const caffe::LayerParameter& layer : net.net.layer()) {
    if (makes(layer, blob)) return;
    known.insert(known.end(), layer.top().begin(), layer.top().end());
  }
  throw UserError(fmt::format("{}: there is no blob '{}' in the test phase{}", net.path, blob,
                              did_you_mean(blob, known)));
}

// Goes from the last layer to the first: a layer that makes something needed makes what it reads needed.
std::vector<bool> needed_layers(const caffe::NetParameter& net, const std::vector<std::string>& blobs) {
  std::set<std::string> needed(blobs.begin(), blobs.end());
  std::vector<bool> keeps(static_cast<size_t>(net.layer_size()), false);
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    const caffe::LayerParameter& layer = net.layer(i);
    keeps[i] = std::ranges::any_of(layer.top(), [&](const std::string& top) { return needed.contains(top); });
    if (keeps[i]) needed.insert(layer.bottom().begin(), layer.bottom().end());
  }
  return keeps;
}

// Whether the last layer that makes the blob is one that computes, and no layer after it reads it.
bool ends_in(const caffe::NetParameter& net, const std::string& blob) {
  for (int i = net.layer_size() - 1; i >= 0; --i) {
    if (makes(net.layer(i), blob)) return !is_source(net.layer(i));
    if (std::ranges::find(net.layer(i).bottom(), blob) != net.layer(i).bottom().end()) return false;
  }
  return false;
}

// Trained weights take the place of what fillers would draw.
void drop_fillers(caffe::LayerParameter& layer) {
  std::vector<const google::protobuf::FieldDescriptor*> options, fields;
  layer.GetReflection()->ListFields(layer, &options);
  for (const auto* option : options) {
    if (option->is_repeated() || option->message_type() == nullptr) continue;
    google::protobuf::Message& of_type = *layer.GetReflection()->MutableMessage(&layer, option);
    of_type.GetReflection()->ListFields(of_type, &fields);
    for (const auto* field : fields)
      if (field->message_type() == caffe::FillerParameter::descriptor())
        of_type.GetReflection()->ClearField(&of_type, field);
  }
}

std::string add_copy(NetFile& net, const std::string& blob) {
  const std::string name = blob + " (put out)";
  caffe::LayerParameter& layer = *net.net.add_layer();
  layer.set_name(name);
  layer.set_type("Split");
  layer.add_bottom(blob);
  layer.add_top(name);
  net.layer_lines.push_back(0);
  return name;
}

}  // namespace

PartOfNet part_of_net(const NetFile& file, const caffe::NetState& state,
                      const std::vector<std::string>& blobs) {
  NetFile net = net_in(file, state);
  for (const std::string& blob : blobs) check_blob(net, blob);
  const std::vector<bool> keeps = needed_layers(net.net, blobs);
  PartOfNet part{{.path = net.path, .net = net.net, .layer_lines = {}, .precision = net.precision}, {}};
  part.file.net.clear_layer();
  for (int i = 0; i < net.net.layer_size(); ++i) {
    if (!keeps[i]) continue;
    caffe::LayerParameter& layer = *part.file.net.add_layer();
    layer = net.net.layer(i);
    if (!is_source(layer)) drop_fillers(layer);
    part.file.layer_lines.push_back(net.layer_lines[i]);
  }
  const caffe::NetParameter without_copies = part.file.net;
  for (const std::string& blob : blobs)
    part.outputs.push_back(ends_in(without_copies, blob) ? blob : add_copy(part.file, blob));
  return part;
}

std::vector<std::string> net_outputs(const NetFile& file, const caffe::NetState& state) {
  const NetFile net = net_in(file, state);
  std::vector<std::string> unread;
  for (const caffe::LayerParameter& layer : net.net.layer()) {
    for (const std::string& bottom : layer.bottom()) std::erase(unread, bottom);
    if (!is_source(layer)) unread.insert(unread.end(), layer.top().begin(), layer.top().end());
  }
  return unread;
}

ImageInput image_input_of(const NetFile& part) {
  std::vector<int> sources;
  for (int i = 0; i < part.net.layer_size(); ++i)
    if (is_source(part.net.layer(i))) sources.push_back(i);
  if (sources.empty()) throw UserError(fmt::format("{}: no layer brings samples in", part.path));
  const caffe::LayerParameter& layer = part.net.layer(sources[0]);
  const std::string where = fmt::format("{}: layer '{}'", part.where(sources[0]).text(), layer.name());
  if (layer.type() != "Input")
    throw UserError(
        fmt::format("{} ({}) brings samples of its own; images are given to a deploy net, which has an Input "
                    "layer in its place (input_param {{ shape {{ dim: 1 dim: 3 dim: 227 dim: 227 }} }})",
                    where, layer.type()));
  if (sources.size() > 1 || layer.top_size() != 1)
    throw UserError(
        fmt::format("{} is not the net's only input; images are given to nets of one input", where));
  const caffe::InputParameter& input = layer.input_param();
  const bool four = input.shape_size() == 1 && input.shape(0).dim_size() == 4;
  const bool sane = four && std::ranges::all_of(input.shape(0).dim(), [](int64_t extent) {
                      return extent >= 1 && extent <= INT32_MAX;
                    });
  if (!sane)
    throw UserError(fmt::format(
        "{}: images need an input of four axes, samples x channels x height x width; this "
        "one has the shape {}",
        where, fmt::join(input.shape_size() > 0 ? input.shape(0).dim() : caffe::BlobShape().dim(), "x")));
  auto extent = [&](int axis) { return static_cast<int>(input.shape(0).dim(axis)); };
  return {layer.name(), extent(0), extent(1), extent(2), extent(3)};
}

void set_input_batch(NetFile& part, const std::string& layer, int batch) {
  for (caffe::LayerParameter& candidate : *part.net.mutable_layer())
    if (candidate.name() == layer) candidate.mutable_input_param()->mutable_shape(0)->set_dim(0, batch);
}

}  // namespace cortado
