#pragma once

#include <vector>

#include "cortado/machine/device_graph.h"

namespace cortado {

// Consecutive devices.
struct DeviceBlock {
  int first = 0, count = 1;
  int end() const { return first + count; }
  bool operator==(const DeviceBlock&) const = default;
};

// Every way to divide `whole` into two to `most` blocks along the machine's hierarchy: between nodes before
// within nodes, between groups of devices that one link joins before within them, then in equal parts.
// Divisions that differ only in the order of equal halves are one.
std::vector<std::vector<DeviceBlock>> divisions(const DeviceGraph& machine, DeviceBlock whole, int most);

// Divides `whole` into one block for each share, in their order, of sizes as near to the shares as whole
// devices allow. Empty where there are fewer devices than shares. `shares`: above 0.
std::vector<DeviceBlock> in_proportion(DeviceBlock whole, const std::vector<double>& shares);

}  // namespace cortado
