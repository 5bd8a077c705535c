#include "cortado/base/error.h"
#include "cortado/device/cuda.h"

namespace cortado::device {

std::vector<Gpu> gpus() { return {}; }

std::string no_gpus_because() {
  return "this cortado is built without CUDA; build it where the CUDA toolkit, 12 or 13, is installed";
}

std::unique_ptr<DeviceRuntime> make_cuda(int, const DeviceOptions&) { throw UserError(no_gpus_because()); }

}  // namespace cortado::device
