#pragma once

#include <algorithm>
#include <cmath>

#include "cortado/cost/cost_model.h"

namespace cortado::testing {

// Costs that no machine has, but which depend on all that a machine's depend on.
class FakeCosts : public CostModel {
 public:
  TaskTime task(const Task& task, int) override {
    double elements = 0;
    for (const Box& box : task.input_boxes) elements += static_cast<double>(box.shape().size());
    for (const Box& box : task.output_boxes) elements += static_cast<double>(box.shape().size());
    const double once = std::pow(elements, 0.7) * 1e-6;
    return {.forward = {once}, .backward_weights = {once}, .backward = {once}};
  }
  Seconds update(Bytes parameters, int) override { return {static_cast<double>(parameters.count) * 1e-9}; }
  Seconds exchange(const ExchangeVolume& volume) override {
    return {(volume.inside + 2 * volume.across) * 1e-7 + volume.messages * 1e-6};
  }
  Seconds collective(Collective, std::span<const std::vector<int>> groups, Bytes bytes) override {
    size_t largest = 0;
    for (const auto& group : groups) largest = std::max(largest, group.size());
    return {static_cast<double>(largest - 1) * (1e-6 + static_cast<double>(bytes.count) * 1e-8)};
  }
};

inline std::vector<int> one_node(int devices) { return std::vector<int>(static_cast<size_t>(devices)); }

}  // namespace cortado::testing
