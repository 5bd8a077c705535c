#include "cortado/net/weights.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/hdf5_file.h"
#include "cortado/net/net_file.h"
#include "cortado/net/text_format.h"

namespace cortado {
namespace {

bool is_legacy(const caffe::BlobProto& message) {
  return message.has_num() || message.has_channels() || message.has_height() || message.has_width();
}

Shape shape_of(const caffe::BlobProto& message) {
  if (is_legacy(message)) return {message.num(), message.channels(), message.height(), message.width()};
  const auto& extents = message.shape().dim();
  return Shape(std::span(extents.data(), static_cast<size_t>(extents.size())));
}

Weights weights_of_net(const caffe::NetParameter& net, const std::string& file) {
  Weights weights;
  for (const caffe::LayerParameter& layer : net.layer()) {
    if (layer.blobs_size() == 0) continue;
    LayerWeights& entry = weights.emplace_back(LayerWeights{layer.name(), {}});
    for (int i = 0; i < layer.blobs_size(); ++i) {
      entry.blobs.push_back(
          blob_of_message(layer.blobs(i), fmt::format("{}: blob {} of layer '{}'", file, i, layer.name())));
    }
  }
  return weights;
}

// Datasets "LAYER/INDEX" below the group data; names of layers may hold slashes.
Weights read_weights_hdf5(const std::string& path) {
  Hdf5Reader reader(path);
  std::map<std::string, std::map<int, std::string>> found;
  reader.for_each_dataset("data", [&](const std::string& name) {
    size_t slash = name.rfind('/');
    std::string index = slash == std::string::npos ? "" : name.substr(slash + 1);
    bool is_index = !index.empty() && index.size() < 6 &&
                    std::ranges::all_of(index, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_index) throw UserError(fmt::format("{}: dataset 'data/{}' is not named LAYER/INDEX", path, name));
    found[name.substr(0, slash)][std::stoi(index)] = "data/" + name;
  });
  Weights weights;
  for (const auto& [layer, datasets] : found) {
    LayerWeights& entry = weights.emplace_back(LayerWeights{layer, {}});
    for (const auto& [index, name] : datasets) {
      if (index != static_cast<int>(entry.blobs.size())) {
        throw UserError(fmt::format("{}: layer '{}' lacks blob {}", path, layer, entry.blobs.size()));
      }
      entry.blobs.push_back(reader.blob(name));
    }
  }
  return weights;
}

// Four legacy axes fit a shape of at most four when the axes in front are 1.
bool fits(const Shape& in_file, const Shape& wanted) {
  if (in_file == wanted) return true;
  if (in_file.rank() != 4 || wanted.rank() > 4) return false;
  int leading = 4 - wanted.rank();
  for (int axis = 0; axis < 4; ++axis) {
    if (in_file[axis] != (axis < leading ? 1 : wanted[axis - leading])) return false;
  }
  return true;
}

}  // namespace

Blob blob_of_message(const caffe::BlobProto& message, const std::string& what) {
  Blob blob;
  int64_t values = message.double_data_size() > 0 ? message.double_data_size() : message.data_size();
  int64_t expected = 0;
  try {
    blob.shape = shape_of(message);
    expected = blob.shape.size();
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", what, error.what()));
  }
  if (values != expected) {
    throw UserError(fmt::format("{} has {} values for its shape {}; the file is broken", what, values,
                                blob.shape.text()));
  }
  if (message.double_data_size() > 0) {
    for (double value : message.double_data()) blob.values.push_back(static_cast<float>(value));
  } else {
    blob.values.assign(message.data().begin(), message.data().end());
  }
  return blob;
}

void write_blob(const Blob& blob, caffe::BlobProto& message) {
  message.Clear();
  message.mutable_shape();  // a scalar has a shape without axes
  for (int64_t extent : blob.shape.extents()) message.mutable_shape()->add_dim(extent);
  message.mutable_data()->Add(blob.values.begin(), blob.values.end());
}

Weights read_weights(const std::string& path) {
  std::string content = read_file(path);
  if (is_hdf5(content)) return read_weights_hdf5(path);
  caffe::NetParameter net;
  parse_binary(content, path, net);
  content = {};
  NetFile file = net_of_message(std::move(net), path);
  Weights weights = weights_of_net(file.net, path);
  if (weights.empty()) throw UserError(fmt::format("{}: no layer has weights; is it a caffemodel?", path));
  return weights;
}

void write_caffemodel(const std::string& path, const caffe::NetParameter& net, const Weights& weights) {
  uint64_t bytes = 0;
  std::map<std::string_view, const LayerWeights*> of_layer;
  for (const LayerWeights& entry : weights) {
    of_layer[entry.layer] = &entry;
    for (const Blob& blob : entry.blobs) bytes += sizeof(float) * blob.values.size();
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
    throw UserError(
        fmt::format("{}: {} bytes of weights are more than a caffemodel can hold (2 GiB); use HDF5 "
                    "snapshots",
                    path, bytes));
  }
  caffe::NetParameter full = net;
  for (caffe::LayerParameter& layer : *full.mutable_layer()) {
    layer.clear_blobs();
    auto entry = of_layer.find(layer.name());
    if (entry == of_layer.end()) continue;
    for (const Blob& blob : entry->second->blobs) write_blob(blob, *layer.add_blobs());
  }
  write_binary(path, full);
}

void write_weights_hdf5(const std::string& path, const Weights& weights) {
  Hdf5Writer writer;
  writer.group("data");
  for (const LayerWeights& entry : weights) {
    for (size_t i = 0; i < entry.blobs.size(); ++i) {
      writer.blob(fmt::format("data/{}/{}", entry.layer, i), entry.blobs[i]);
    }
  }
  writer.write(path);
}

WeightMatch match_weights(const Network& network, const Weights& weights, const std::string& file) {
  WeightMatch match;
  match.of_parameter.resize(network.parameters().size());
  std::set<std::string> matched;
  for (const LayerWeights& entry : weights) {
    int n = network.node(entry.layer);
    if (n < 0) {
      match.unused_layers.push_back(entry.layer);
      continue;
    }
    const Network::Node& node = network.nodes()[n];
    matched.insert(entry.layer);
    if (entry.blobs.size() != node.parameters.size()) {
      throw UserError(
          fmt::format("{}: layer '{}' has {} blobs, the network needs {} ({}); rename the layer to leave "
                      "it untrained",
                      file, entry.layer, entry.blobs.size(), node.parameters.size(), node.where.text()));
    }
    for (size_t i = 0; i < entry.blobs.size(); ++i) {
      const Network::Parameter& parameter = network.parameters()[node.parameters[i]];
      if (!fits(entry.blobs[i].shape, parameter.spec.shape)) {
        throw UserError(
            fmt::format("{}: layer '{}' has a {} of shape {}, the network needs {} ({}); rename the layer "
                        "to leave it untrained",
                        file, entry.layer, parameter.spec.role, entry.blobs[i].shape.text(),
                        parameter.spec.shape.text(), node.where.text()));
      }
      match.of_parameter[node.parameters[i]] = &entry.blobs[i];
    }
  }
  for (const Network::Node& node : network.nodes()) {
    if (!node.parameters.empty() && !matched.contains(node.name)) match.unmatched_layers.push_back(node.name);
  }
  return match;
}

Weights collect_weights(const Network& network,
                        const std::function<std::vector<float>(int parameter)>& values) {
  Weights weights;
  for (const Network::Node& node : network.nodes()) {
    if (node.parameters.empty()) continue;
    LayerWeights& entry = weights.emplace_back(LayerWeights{node.name, {}});
    for (int parameter : node.parameters) {
      entry.blobs.push_back({network.parameters()[parameter].spec.shape, values(parameter)});
    }
  }
  return weights;
}

}  // namespace cortado
