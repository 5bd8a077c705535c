#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// A tensor in a file: row-major in its spoken shape.
struct Blob {
  Shape shape;
  std::vector<float> values;
  bool operator==(const Blob&) const = default;
};

// The parameters of one layer, in the layer's order (Caffe's blobs).
struct LayerWeights {
  std::string layer;
  std::vector<Blob> blobs;
  bool operator==(const LayerWeights&) const = default;
};
using Weights = std::vector<LayerWeights>;

// Reads a caffemodel (any generation) or Caffe's HDF5 weights; the content tells which. Layers without
// parameters are left out. Throws UserError: missing or truncated file, sizes that disagree with shapes.
Weights read_weights(const std::string& path);

// Writes a caffemodel that Caffe reads: `net` with the blobs of `weights` in its layers (by name).
// Throws UserError beyond 2 GiB, protobuf's limit.
void write_caffemodel(const std::string& path, const caffe::NetParameter& net, const Weights& weights);

// Writes Caffe's HDF5 layout: float datasets data/LAYER/INDEX.
void write_weights_hdf5(const std::string& path, const Weights& weights);

// What of a file belongs to which parameter of a network.
struct WeightMatch {
  std::vector<const Blob*> of_parameter;      // per Network::parameters(); null: not in the file
  std::vector<std::string> unmatched_layers;  // layers of the network with parameters that the file lacks
  std::vector<std::string> unused_layers;     // layers of the file that the network lacks
};
// Matches by layer name, by Caffe's rules: unmatched and unused layers are no errors. Throws UserError naming
// `file`, layer and both shapes when the number of blobs or a shape differs. A shape of a legacy file (four
// axes) fits when it is the parameter's with leading ones. `weights` must outlive the result.
WeightMatch match_weights(const Network& network, const Weights& weights, const std::string& file);

// The inverse: the weights of a network, one entry per layer with parameters. `values` gives the values of a
// parameter in the file's order. Shared parameters stand with every layer that uses them, as in Caffe.
Weights collect_weights(const Network& network,
                        const std::function<std::vector<float>(int parameter)>& values);

// Message <-> blob. Legacy num/channels/height/width and double_data are read too. `what` names the blob in
// messages: "FILE: blob 0 of layer 'conv1'".
Blob blob_of_message(const caffe::BlobProto& message, const std::string& what);
void write_blob(const Blob& blob, caffe::BlobProto& message);

}  // namespace cortado
