#pragma once

#include "cortado/base/error.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"

namespace cortado {

// Builds a net for training and for testing and asks its layers for their cost. Sources that need data bring
// a batch of small images.
inline void build_both_phases(const NetFile& file) {
  auto shapes = [](const LayerDeclaration& layer) {
    try {
      return declared_source_shapes(layer);
    } catch (const UserError&) {
      std::vector<Shape> images_and_labels(layer.tops.size(), Shape{2});
      if (!images_and_labels.empty()) images_and_labels[0] = {2, 3, 9, 8};
      return images_and_labels;
    }
  };
  for (Phase phase : {Phase::train, Phase::test}) {
    try {
      LoadedNetwork loaded = load_network(file, net_state(phase), shapes);
      for (NodeIndex n : indices(loaded.network.nodes())) loaded.network.forward_flops(n);
      loaded.network.parameter_count();
    } catch (const UserError&) {
    }
  }
}

}  // namespace cortado
