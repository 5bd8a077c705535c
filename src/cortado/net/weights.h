#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/net/blob.h"
#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// The parameters of one layer, in the layer's order (Caffe's blobs).
struct LayerWeights {
  // `number` in Caffe's HDF5, which has one place for all layers of a name: the net's last layer of that
  // name.
  static constexpr int last = -1;

  std::string layer;
  std::vector<Blob> blobs;  // one without values is left out: an earlier layer has the parameter
  int number = 0;           // among the file's layers of that name
  bool operator==(const LayerWeights&) const = default;
};
using Weights = std::vector<LayerWeights>;

// Reads a caffemodel (any generation) or Caffe's HDF5 weights; the content tells which. Layers without
// parameters are left out. Throws UserError: missing or truncated file, sizes that disagree with shapes,
// values that are not finite.
Weights read_weights(const std::string& path);

// Throws UserError naming `file` and layer when a value is infinite or not a number.
void check_finite(const Weights& weights, const std::string& file);

// Writes a caffemodel that Caffe reads: `net` with the blobs of `weights` in its layers (by name).
// Throws UserError beyond 2 GiB, protobuf's limit.
void write_caffemodel(const std::string& path, const caffe::NetParameter& net, const Weights& weights);

// Writes Caffe's HDF5 layout: float datasets data/LAYER/INDEX, none for what is left out. Throws UserError
// when two layers have one name.
void write_weights_hdf5(const std::string& path, const Weights& weights);

// What of a file belongs to which parameter of a network.
struct WeightMatch {
  IndexedVector<ParameterIndex, const Blob*> of_parameter;  // null: not in the file
  std::vector<std::string> unmatched_layers;  // layers of the network with parameters that the file lacks
  std::vector<std::string> unused_layers;     // layers of the file that the network lacks
};
// Says which of the net's layers of one name a file's layer of that name belongs to.
enum class SameName {
  first,  // the first, whatever its number: Caffe's rule for weights to start from
  each    // the one of its number: what was written by a net of the same layers
};
// Matches by layer name, by Caffe's rules: unmatched and unused layers are no errors. Throws UserError naming
// `file`, layer and both shapes when the number of blobs or a shape differs. A shape of a legacy file (four
// axes) fits when it is the parameter's with leading ones. `weights` must outlive the result.
WeightMatch match_weights(const Network& network, const Weights& weights, const std::string& file,
                          SameName same_name = SameName::first);

// The inverse: the weights of a network, one entry per layer with parameters. `values` gives the values of a
// parameter in the file's order. Shared parameters are written with every layer that uses them, as in Caffe's
// caffemodels, or, as in its HDF5, with their first (`once`).
Weights collect_weights(const Network& network,
                        const std::function<std::vector<float>(ParameterIndex parameter)>& values,
                        bool once = false);

// Message <-> blob. Legacy num/channels/height/width and double_data are read too. `what` names the blob in
// messages: "FILE: blob 0 of layer 'conv1'".
Blob blob_of_message(const caffe::BlobProto& message, const std::string& what);
void write_blob(const Blob& blob, caffe::BlobProto& message);

}  // namespace cortado
