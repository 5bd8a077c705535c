#include "cortado/device/device_name.h"

#include <charconv>
#include <fmt/format.h>

namespace cortado::device {
namespace {

constexpr std::string_view numbered_gpu = "gpu:";

}  // namespace

std::string DeviceName::text() const {
  switch (kind) {
    case Kind::cpu:
      return "cpu";
    case Kind::emulated:
      return "emulated";
    case Kind::gpu:
      break;
  }
  return number < 0 ? "gpu" : fmt::format("{}{}", numbered_gpu, number);
}

std::optional<DeviceName> device_named(std::string_view text) {
  using Kind = DeviceName::Kind;
  if (text == "cpu") return DeviceName{};
  if (text == "emulated") return DeviceName{.kind = Kind::emulated};
  if (text == "gpu") return DeviceName{.kind = Kind::gpu};
  if (!text.starts_with(numbered_gpu)) return std::nullopt;
  int number = -1;
  const char *const begin = text.data() + numbered_gpu.size(), *const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || read != end || number < 0) return std::nullopt;
  return DeviceName{.kind = Kind::gpu, .number = number};
}

}  // namespace cortado::device
