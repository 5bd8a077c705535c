// Any bytes are either a safetensors file, of which each reader says the same, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/train/safetensors.h"

namespace {

// A file in memory, which readers open by its path.
struct MemoryFile {
  int descriptor = memfd_create("fuzz", 0);
  std::string path = fmt::format("/proc/self/fd/{}", descriptor);

  void fill(const uint8_t* data, size_t size) const {
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != static_cast<ssize_t>(size))
      std::abort();
  }
};

void read(const std::string& path) {
  using namespace cortado;
  const SafetensorsFile all = read_safetensors(path, OtherTypes::passed_over);
  if (read_safetensors_metadata(path) != all.metadata) std::abort();
  for (const SafetensorsFile::Tensor& tensor : all.tensors) {
    if (tensor.shape.size() != static_cast<int64_t>(tensor.values.size())) std::abort();
    if (all.find(tensor.name) != &tensor) std::abort();
  }
  const SafetensorsFile floats = read_safetensors(path);
  if (floats.tensors.size() != all.tensors.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  file.fill(data, size);
  try {
    read(file.path);
  } catch (const cortado::UserError&) {
  }
  return 0;
}
