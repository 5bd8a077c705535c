#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// A model file: its message, always in the newest generation, and the place of each layer in it.
struct NetFile {
  std::string path;  // for messages
  caffe::NetParameter net;
  std::vector<int> layer_lines;                    // line of net.layer(i); 0: unknown
  std::vector<std::string> warnings = {};          // what has no effect, a line each, for the user
  std::vector<std::string> shapeless_inputs = {};  // `input` without a shape, which a network needs
  Precision precision = Precision::f32;            // that its networks compute in; no file says it

  SourceLocation where(int layer) const { return {path, layer_lines[layer]}; }
};

// Reads a prototxt, or a net within another message (`net_param` of a solver file; lines are then unknown),
// and upgrades it. Throws UserError naming file, line, column and field.
NetFile read_net(const std::string& path);
NetFile parse_net(std::string_view text, const std::string& path);
NetFile net_of_message(caffe::NetParameter net, const std::string& path);

// Gives blobs whose shapes the file leaves open (`input`, and Input layers, without any) those that `shapes`
// has for so many of them.
void give_input_shapes(NetFile& file, const std::function<std::vector<Shape>(size_t blobs)>& shapes);

// The layers that `state` asks for, as declarations ready for Network::build, after Caffe's include and
// exclude rules; force_backward of the net becomes propagate_down of its layers. A layer that names no phase
// is of the state's. Throws UserError when no layer is left.
struct DeclaredNet {
  caffe::NetParameter net;  // filtered and upgraded: what a caffemodel of this network says
  std::vector<LayerDeclaration> layers;
};
DeclaredNet declare_net(const NetFile& file, const caffe::NetState& state);

// All of it: filter, declare, build. `source_shapes` is asked once for each source layer; `learns` as in
// Network::build.
struct LoadedNetwork {
  caffe::NetParameter net;
  Network network;
};
LoadedNetwork load_network(const NetFile& file, const caffe::NetState& state,
                           const Network::SourceShapes& source_shapes, std::optional<bool> learns = {});

// Writes a prototxt of the newest generation, without weights.
void write_net(const std::string& path, const caffe::NetParameter& net);

// Shapes of a source layer that its own options tell: Input, DummyData and MemoryData. Others need a reader:
// UserError. Enough for `show`, `time` on nets without data, and tests.
std::vector<Shape> declared_source_shapes(const LayerDeclaration& layer);

caffe::NetState net_state(Phase phase, int level = 0, const std::vector<std::string>& stages = {});
// The state of a net that a command names, by Caffe's rule: that of the file (`state { }`) with `phase` and
// `level` in place of its own, and `stages` added.
caffe::NetState net_state(const NetFile& file, Phase phase, int level,
                          const std::vector<std::string>& stages);

}  // namespace cortado
