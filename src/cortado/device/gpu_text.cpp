#include <fmt/format.h>

#include "cortado/device/cuda.h"

namespace cortado::device {

std::string text(const Gpu& gpu) {
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB", gpu.name, gpu.major, gpu.minor,
                     static_cast<double>(gpu.memory.count) / 0x1p30);
}

}  // namespace cortado::device
