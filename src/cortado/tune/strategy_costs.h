#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// What a device does in an iteration, alone. What one kernel computes of several layers is the first one's.
struct DeviceParts {
  struct OfNode {
    bool here = false;          // it computes some of the node
    Seconds forward, gradient;  // until the gradient of the node's input is there, if one is wanted
    Seconds after;              // of the backward pass, after that
    Seconds update;
    Seconds total() const { return forward + gradient + after + update; }
  };
  struct Moved {
    Seconds there, back;  // until the longest message has come: before the forward pass, and of the gradient
  };
  IndexedVector<NodeIndex, OfNode> nodes;
  std::map<std::pair<TensorIndex, NodeIndex>, Moved> moved;  // by tensor and the node that reads it
};

// What is known of a job under a strategy. Where costs are measured, all ranks ask the same in the same
// order.
struct StrategyCosts {
  std::function<Seconds(const Strategy&)> iteration;                 // simulated; infinite: it does not fit
  std::function<std::vector<DeviceParts>(const Strategy&)> devices;  // of each
};

}  // namespace cortado
