#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cortado::device {

// Where a rank computes, in a user's words: "cpu", "gpu" (one for each rank of a host), "gpu:1", "emulated".
struct DeviceName {
  enum class Kind { cpu, gpu, emulated };
  Kind kind = Kind::cpu;
  int number = -1;  // of a GPU on its host, counted from 0; -1: not said

  std::string text() const;
  bool operator==(const DeviceName&) const = default;
};

// Returns the device of that name; nothing where there is no such name.
std::optional<DeviceName> device_named(std::string_view text);

}  // namespace cortado::device
