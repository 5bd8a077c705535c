#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/layers/user_layer.h"
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
  MakeUserLayer user_layers = {};                  // makes layers of type Python; null: there are none

  SourceLocation where(int layer) const { return {path, layer_lines[layer]}; }
};

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
