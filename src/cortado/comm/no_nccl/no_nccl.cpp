#include "cortado/base/error.h"
#include "cortado/comm/links.h"

namespace cortado {

bool built_with_nccl() { return false; }
std::string nccl_version() { return "none: built without it"; }

std::unique_ptr<Communicator> make_nccl(Communicator&, device::DeviceRuntime&, device::Queue&,
                                        const std::vector<int>&, std::vector<std::vector<int>>) {
  throw InternalError("NCCL is asked for in a build without it");
}

}  // namespace cortado
