#include "cortado/net/declare_net.h"

#include <fmt/format.h>
#include <map>
#include <set>

#include "cortado/base/error.h"
#include "cortado/net/build_network.h"
#include "cortado/net/filter.h"
#include "cortado/net/from_caffe.h"

namespace cortado {
namespace {

// Layers of a file may have one name, those of a network have not: the second "loss" is "loss#2".
class NodeNames {
 public:
  explicit NodeNames(const caffe::NetParameter& net) {
    for (const caffe::LayerParameter& layer : net.layer()) in_file_.insert(layer.name());
  }
  std::string next(const std::string& name) {
    if (given_.insert(name).second) return name;
    int& number = numbers_.try_emplace(name, 1).first->second;
    std::string numbered;
    do numbered = fmt::format("{}#{}", name, ++number);
    while (in_file_.contains(numbered) || !given_.insert(numbered).second);
    return numbered;
  }

 private:
  std::set<std::string> in_file_, given_;
  std::map<std::string, int> numbers_;  // the last given to a layer of that name
};

}  // namespace

DeclaredNet declare_net(const NetFile& file, const caffe::NetState& state) {
  if (!file.shapeless_inputs.empty()) {
    throw UserError(
        fmt::format("{}: input '{}' has no shape; add input_shape {{ dim: ... }}, or give an input shape "
                    "where one can be given",
                    file.path, file.shapeless_inputs.front()));
  }
  if (file.net.layer_size() == 0)
    throw UserError(fmt::format("{}: there is no layer in it; give the file of a net", file.path));
  NetFile kept = filter_net(file, state);
  if (kept.net.layer_size() == 0)
    throw UserError(
        fmt::format("{}: none of its layers is of phase {} and its level and stages; change their "
                    "include and exclude, or give another phase, level or stage",
                    file.path, state.phase() == caffe::TRAIN ? "TRAIN" : "TEST"));
  DeclaredNet declared;
  NodeNames names(kept.net);
  for (int i = 0; i < kept.net.layer_size(); ++i) {
    caffe::LayerParameter& layer = *kept.net.mutable_layer(i);
    if (layer.name().empty()) layer.set_name(fmt::format("{}{}", layer.type(), i));
    if (!layer.has_phase()) layer.set_phase(state.phase());
    const std::string name = names.next(layer.name());
    MakeUserLayer make;
    if (file.user_layers)
      make = [&](UserLayerText text) {
        text.name = name;
        return file.user_layers(text);
      };
    declared.layers.push_back(declare_layer(layer, kept.where(i), make));
    declared.layers.back().name = name;
    if (file.net.force_backward()) force_backward(declared.layers.back());
  }
  declared.net = std::move(kept.net);
  return declared;
}

LoadedNetwork load_network(const NetFile& file, const caffe::NetState& state,
                           const Network::SourceShapes& source_shapes, std::optional<bool> learns,
                           bool gradients_from_outputs) {
  DeclaredNet declared = declare_net(file, state);
  Phase phase = state.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  const Network network =
      build_network(file.net.name(), phase, declared.layers, source_shapes, learns, gradients_from_outputs);
  return {std::move(declared.net), network.in(file.precision)};
}

}  // namespace cortado
