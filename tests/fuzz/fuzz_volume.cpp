// Headers of NIfTI files: what they say of where values lie is within the file.
#include <cstddef>
#include <cstdint>

#include "cortado/base/error.h"
#include "cortado/data/volume_layout.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  try {
    const auto bytes = static_cast<int64_t>(size);
    const VolumeLayout layout = nifti_layout({reinterpret_cast<const char*>(data), size}, bytes);
    if (layout.offset < 0 || layout.offset + layout.extents.size() * bytes_of(layout.element) > bytes)
      __builtin_trap();
  } catch (const UserError&) {
  }
  return 0;
}
