#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cortado/machine/link_class.h"

namespace cortado::plan {

// A batch size: samples of an iteration, or those of each device.
struct SweepBatch {
  int64_t samples = 0;
  bool per_device = false;
  int64_t on(int devices) const { return per_device ? samples * devices : samples; }
  std::string text() const;  // "256", "32/device"
  bool operator==(const SweepBatch&) const = default;
};

// What a sweep varies: every combination is a point.
struct SweepAxes {
  std::vector<int> devices;
  std::vector<SweepBatch> batches;
  std::string link;                   // the class whose bandwidth varies; empty: none does
  std::vector<Bandwidth> bandwidths;  // of it; empty: the machine's own
};

// Reads axes as users write them, a text each:
//   devices=4..64        4, 8, ... doubled up to 64; or a list, 4,6,8
//   batch=256,32/device  of the whole iteration, or of each device
//   link=12,25           GB/s (1e9 bytes) of the slowest links; link=network:12,25 those of a class
//   (LinkClass)
// Axes that are left out have one value: all devices, `batch`, the links as they are. Throws UserError that
// names the text and the remedy.
SweepAxes sweep_axes(const std::vector<std::string>& texts, const DeviceGraph& machine, int64_t batch);

}  // namespace cortado::plan
