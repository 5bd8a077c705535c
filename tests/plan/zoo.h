#pragma once

#include <string>
#include <vector>

#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/plan/plan_graph.h"

namespace cortado::testing {

// A net of models/ for training on `samples` samples of a shape, with a label each, or labels of a shape.
inline Network zoo_net(const std::string& name, int64_t samples, const std::vector<int64_t>& sample,
                       const std::vector<int64_t>& labels = {}) {
  const NetFile file = read_net(CORTADO_SOURCE_DIR "/models/" + name + "/train_val.prototxt");
  return load_network(file, net_state(Phase::train),
                      [&](const LayerDeclaration& layer) {
                        std::vector<Shape> shapes(layer.tops.size(), Shape{samples});
                        for (int64_t extent : sample) shapes[0].append(extent);
                        for (int64_t extent : labels) shapes.back().append(extent);
                        return shapes;
                      })
      .network;
}

// A machine of machines/, its first devices.
inline DeviceGraph ready_machine(const std::string& name, int devices) {
  return load_machine(CORTADO_SOURCE_DIR "/machines/" + name + ".json").first(devices);
}

}  // namespace cortado::testing
