#include "cortado/net/weights.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/finite.h"
#include "cortado/net/hdf5_file.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/net/seal.h"
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
  std::map<std::string, int> layers_named;
  for (const caffe::LayerParameter& layer : net.layer()) {
    const int number = layers_named[layer.name()]++;
    if (layer.blobs_size() == 0) continue;
    LayerWeights& entry = weights.emplace_back(LayerWeights{layer.name(), {}, number});
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
    LayerWeights& entry = weights.emplace_back(LayerWeights{layer, {}, LayerWeights::last});
    for (const auto& [index, name] : datasets) {
      entry.blobs.resize(static_cast<size_t>(index) + 1);
      entry.blobs.back() = reader.blob(name);
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

// The nodes of a network by their layers' names in the file.
class NodesByName {
 public:
  explicit NodesByName(const Network& network) {
    for (NodeIndex n : indices(network.nodes())) {
      const Network::Node& node = network.nodes()[n];
      if (node.part_of.empty()) nodes_[node.file_name].push_back({n, !node.parameters.empty()});
    }
  }

  // The node that a file's layer belongs to; nowhere: there is none.
  NodeIndex target(const LayerWeights& entry, SameName rule) const {
    auto found = nodes_.find(entry.layer);
    if (found == nodes_.end()) return NodeIndex();
    const std::vector<Named>& named = found->second;
    const auto number = static_cast<size_t>(entry.number);
    if (rule == SameName::each && entry.number != LayerWeights::last)
      return number < named.size() ? named[number].node : NodeIndex();
    NodeIndex target = named.front().node;
    bool has_parameters = false;
    for (const Named& other : named) {
      if (!other.has_parameters || (has_parameters && entry.number != LayerWeights::last)) continue;
      target = other.node;
      has_parameters = true;
    }
    return target;
  }

 private:
  struct Named {
    NodeIndex node;
    bool has_parameters;
  };
  std::map<std::string, std::vector<Named>> nodes_;
};

bool has_blob(const LayerWeights& entry, size_t index) {
  return index < entry.blobs.size() && !entry.blobs[index].values.empty();
}

// Whether HDF5 has the node's parameter in an earlier place.
bool stands_earlier(const Network& network, NodeIndex n, size_t index) {
  const std::vector<ParameterIndex>& parameters = network.nodes()[n].parameters;
  const auto own = std::ranges::find(parameters, parameters[index]);
  return network.parameters()[parameters[index]].declared_by != n ||
         own < parameters.begin() + static_cast<ptrdiff_t>(index);
}

void check_fit(const Network& network, NodeIndex n, const LayerWeights& entry, const std::string& file) {
  const Network::Node& node = network.nodes()[n];
  bool complete = entry.number == LayerWeights::last ? entry.blobs.size() <= node.parameters.size()
                                                     : entry.blobs.size() == node.parameters.size();
  for (size_t i = 0; i < node.parameters.size(); ++i)
    complete = complete && (has_blob(entry, i) || stands_earlier(network, n, i));
  if (!complete) {
    const auto blobs =
        std::ranges::count_if(entry.blobs, [](const Blob& blob) { return !blob.values.empty(); });
    throw UserError(
        fmt::format("{}: layer '{}' has {} blobs, the network needs {} ({}); rename the layer to leave "
                    "it untrained",
                    file, entry.layer, blobs, node.parameters.size(), node.where.text()));
  }
  for (size_t i = 0; i < entry.blobs.size(); ++i) {
    const Shape& shape = node.parameter_shapes[i];
    if (!has_blob(entry, i) || fits(entry.blobs[i].shape, shape)) continue;
    const std::string& role = network.parameters()[node.parameters[i]].spec.role;
    throw UserError(
        fmt::format("{}: layer '{}' has a {} of shape {}, the network needs {} ({}); rename the layer "
                    "to leave it untrained",
                    file, entry.layer, role, entry.blobs[i].shape.text(), shape.text(), node.where.text()));
  }
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
  if (is_hdf5(content)) {
    check_seal(content, path);
    Weights weights = read_weights_hdf5(path);
    check_finite(weights, path);
    return weights;
  }
  caffe::NetParameter net;
  parse_binary(content, path, net);
  content = {};
  NetFile file = net_of_message(std::move(net), path);
  Weights weights = weights_of_net(file.net, path);
  if (weights.empty()) throw UserError(fmt::format("{}: no layer has weights; is it a caffemodel?", path));
  check_finite(weights, path);
  return weights;
}

void check_finite(const Weights& weights, const std::string& file) {
  for (const LayerWeights& layer : weights) {
    for (size_t i = 0; i < layer.blobs.size(); ++i) {
      const int64_t at = first_non_finite(layer.blobs[i].values);
      if (at < 0) continue;
      throw UserError(
          fmt::format("{}: blob {} of layer '{}' has the value {} at {}; take weights of a training that did "
                      "not diverge",
                      file, i, layer.layer, layer.blobs[i].values[static_cast<size_t>(at)], at));
    }
  }
}

void write_caffemodel(const std::string& path, const caffe::NetParameter& net, const Weights& weights) {
  uint64_t bytes = 0;
  std::map<std::pair<std::string_view, int>, const LayerWeights*> of_layer;
  for (const LayerWeights& entry : weights) {
    of_layer[{entry.layer, entry.number}] = &entry;
    for (const Blob& blob : entry.blobs) bytes += std::as_bytes(std::span(blob.values)).size();
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int>::max())) {
    throw UserError(
        fmt::format("{}: {} bytes of weights are more than a caffemodel can hold (2 GiB); use HDF5 "
                    "snapshots",
                    path, bytes));
  }
  caffe::NetParameter full = net;
  std::map<std::string, int> layers_named;
  for (caffe::LayerParameter& layer : *full.mutable_layer()) {
    layer.clear_blobs();
    auto entry = of_layer.find({layer.name(), layers_named[layer.name()]++});
    if (entry == of_layer.end()) continue;
    for (const Blob& blob : entry->second->blobs) write_blob(blob, *layer.add_blobs());
  }
  write_binary(path, full);
}

void write_weights_hdf5(const std::string& path, const Weights& weights) {
  Hdf5Writer writer;
  writer.group("data");
  std::set<std::string_view> names;
  for (const LayerWeights& entry : weights) {
    if (!names.insert(entry.layer).second) {
      throw UserError(
          fmt::format("{}: two layers with parameters are named '{}', for which HDF5 has one "
                      "place; rename one, or write another format",
                      path, entry.layer));
    }
    writer.group("data/" + entry.layer);
    for (size_t i = 0; i < entry.blobs.size(); ++i) {
      if (!entry.blobs[i].values.empty())
        writer.blob(fmt::format("data/{}/{}", entry.layer, i), entry.blobs[i]);
    }
  }
  writer.write(path);
}

WeightMatch match_weights(const Network& network, const Weights& weights, const std::string& file,
                          SameName same_name) {
  WeightMatch match;
  match.of_parameter.resize(network.parameters().size());
  const NodesByName nodes(network);
  std::set<NodeIndex> matched;
  for (const LayerWeights& entry : weights) {
    const NodeIndex n = nodes.target(entry, same_name);
    if (!n) {
      match.unused_layers.push_back(entry.layer);
      continue;
    }
    matched.insert(n);
    check_fit(network, n, entry, file);
    const Network::Node& node = network.nodes()[n];
    for (size_t i = 0; i < entry.blobs.size(); ++i)
      if (has_blob(entry, i)) match.of_parameter[node.parameters[i]] = &entry.blobs[i];
  }
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    const bool lacks = std::ranges::any_of(
        node.parameters, [&](ParameterIndex parameter) { return !match.of_parameter[parameter]; });
    if (lacks && node.part_of.empty() && !matched.contains(n)) match.unmatched_layers.push_back(node.name);
  }
  return match;
}

Weights collect_weights(const Network& network,
                        const std::function<std::vector<float>(ParameterIndex parameter)>& values,
                        bool once) {
  Weights weights;
  std::map<std::string, int> layers_named;
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    if (!node.part_of.empty()) continue;
    const int number = layers_named[node.file_name]++;
    if (node.parameters.empty()) continue;
    LayerWeights& entry = weights.emplace_back(LayerWeights{node.file_name, {}, number});
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const bool left_out = once && stands_earlier(network, n, i);
      entry.blobs.push_back(left_out ? Blob{} : Blob{node.parameter_shapes[i], values(node.parameters[i])});
    }
  }
  return weights;
}

}  // namespace cortado
