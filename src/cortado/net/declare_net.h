#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/net/net_file.h"

namespace cortado {

// The layers that `state` asks for, as declarations ready for build_network(), after Caffe's include and
// exclude rules; force_backward of the net becomes propagate_down of its layers. A layer that names no phase
// is of the state's. Throws UserError when no layer is left.
struct DeclaredNet {
  caffe::NetParameter net;  // filtered and upgraded: what a caffemodel of this network says
  std::vector<LayerDeclaration> layers;
};
DeclaredNet declare_net(const NetFile& file, const caffe::NetState& state);

// All of it: filter, declare, build. `source_shapes` is asked once for each source layer; `learns` and
// `gradients_from_outputs` as in build_network().
struct LoadedNetwork {
  caffe::NetParameter net;
  Network network;
};
LoadedNetwork load_network(const NetFile& file, const caffe::NetState& state,
                           const Network::SourceShapes& source_shapes, std::optional<bool> learns = {},
                           bool gradients_from_outputs = false);

}  // namespace cortado
