#include "cortado/tune/block_cuts.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado {
namespace {

using Dimension = int Degrees::*;

// Lowers degrees until `devices` are enough, the largest first.
Degrees lowered(Degrees degrees, int devices) {
  degrees.r = 1;  // what follows would be cut otherwise
  while (degrees.product() > devices) {
    Dimension largest = &Degrees::n;
    for (Dimension one : {&Degrees::c, &Degrees::d, &Degrees::h, &Degrees::w})
      if (degrees.*one > degrees.*largest) largest = one;
    int& degree = degrees.*largest;
    int parts = degree - 1;
    while (degree % parts != 0) --parts;
    degree = parts;
  }
  return degrees;
}

// Cuts each dimension in its turn into as many parts as it allows and the devices left can be shared by.
Degrees filled(const Degrees& most, int devices, std::initializer_list<Dimension> order) {
  Degrees degrees;
  for (Dimension one : order) {
    int parts = std::min(most.*one, devices);
    while (devices % parts != 0) --parts;
    degrees.*one = parts;
    devices /= parts;
  }
  return degrees;
}

Degrees degrees_of(const Degrees& before, const Degrees& most, int devices, BlockCut cut) {
  constexpr Dimension n = &Degrees::n, c = &Degrees::c, d = &Degrees::d, h = &Degrees::h, w = &Degrees::w;
  switch (cut) {
    case BlockCut::scaled:
      return lowered(before, devices);
    case BlockCut::sample:
      return filled(most, devices, {n, h, w, d, c});
    case BlockCut::space:
      return filled(most, devices, {h, w, d, n, c});
    case BlockCut::channel:
      return filled(most, devices, {c, n, h, w, d});
    case BlockCut::single:
      break;
  }
  return {};
}

}  // namespace

LayerStrategy cut_in_block(const Network& network, NodeIndex node, const LayerStrategy& layer,
                           DeviceBlock block, BlockCut cut) {
  const Network::Node& cut_node = network.nodes()[node];
  const std::vector<Shape> inputs = network.shapes_of(cut_node.inputs);
  const std::vector<Shape> outputs = network.shapes_of(cut_node.outputs);
  LayerStrategy result = layer;
  result.sync = GradientSync::allreduce;
  result.config = {.degrees = degrees_of(layer.config.degrees, most_degrees(*cut_node.layer, inputs, outputs),
                                         block.count, cut),
                   .devices = {},
                   .weights = {}};
  if (!parts_read(*cut_node.layer, inputs, outputs, result.config)) result.config.degrees = {};
  result.config.devices.resize(static_cast<size_t>(result.config.degrees.product()));
  std::iota(result.config.devices.begin(), result.config.devices.end(), block.first);
  return result;
}

}  // namespace cortado
