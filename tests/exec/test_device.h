#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cortado/device/host/host_runtime.h"
#include "cortado/device/host_view.h"
#include "cortado/device/open_device.h"
#include "cortado/device/runtime.h"
#include "cortado/exec/parameters.h"

namespace cortado::testing {

// A device for one rank: the one that CORTADO_TEST_DEVICE names in the environment, as emulated or gpu:0,
// else the host.
class TestDevice {
 public:
  TestDevice() : TestDevice(named()) {}
  // The host or another device: an emulated one unless the environment names one.
  explicit TestDevice(bool other, const device::DeviceOptions& options = {}) {
    const char* name = std::getenv("CORTADO_TEST_DEVICE");
    if (other) own_ = device::open_device(device::device_named(name ? name : "emulated").value(), options);
  }
  static bool named() { return std::getenv("CORTADO_TEST_DEVICE") != nullptr; }
  operator device::DeviceRuntime&() const { return own_ ? *own_ : device::host(); }

 private:
  std::shared_ptr<device::DeviceRuntime> own_;
};

// Launches a step of plain gradient descent, of all elements of an entry or of a range.
inline void descend(ParameterStore& store, EntryIndex index, float rate, std::optional<Range> range = {}) {
  const ParameterStore::Entry& entry = store.entries()[index];
  float* const value = store.device().for_kernels(entry.value);
  const float* const gradient = store.device().for_kernels(entry.gradient);
  const Range of = range.value_or(Range{0, entry.elements});
  if (!store.device().runs_host_functions()) {
    const device::HostView values(store.device(), entry.value, entry.elements);
    const device::HostView gradients(store.device(), entry.gradient, entry.elements);
    std::vector<float> updated(values.values().begin(), values.values().end());
    for (int64_t k = of.begin; k < of.end; ++k)
      updated[static_cast<size_t>(k)] -= rate * gradients.values()[static_cast<size_t>(k)];
    return device::write(store.device(), entry.value, updated);
  }
  store.device().queue().launch([=] {
    for (int64_t k = of.begin; k < of.end; ++k) value[k] -= rate * gradient[k];
  });
}

}  // namespace cortado::testing
