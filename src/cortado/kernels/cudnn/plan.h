#pragma once

#include <optional>
#include <vector>

#include "cortado/kernels/cudnn/graph.h"

namespace cortado::cudnn {

// A way in which cuDNN can run a graph.
struct Plan {
  Descriptor plan;
  int64_t workspace = 0;  // bytes
  int64_t engine = 0;     // cuDNN's number of it
};

// What makes plans without a device, or with one. `properties`: of a device that is not here, as cuDNN
// describes it; absent: that of the handle.
struct PlanFor {
  cudnnHandle_t handle = nullptr;
  std::optional<Descriptor> properties{};
};

// A GPU that need not be here, from the text in which cuDNN describes it (JSON).
Descriptor device_properties(const std::string& text);

// Ways that cuDNN's heuristics list, the best guess first, at most `most`: those that give the same bits each
// time, round nothing that the graph does not, and need at most most_workspace bytes. Throws Refusal where
// cuDNN does not take the graph.
std::vector<Plan> plans(const GraphOf& of, const PlanFor& device, int most);

inline constexpr int64_t most_workspace = int64_t{256}
                                          << 20;  // bytes; every layer's lies in one place of the arena

}  // namespace cortado::cudnn
