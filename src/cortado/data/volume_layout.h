#pragma once

#include <string>
#include <string_view>

#include "cortado/base/shape.h"
#include "cortado/layers/source.h"

namespace cortado {

// Where the values of a volume lie in its file, row-major, and what they mean.
struct VolumeLayout {
  VolumeOptions::Element element = VolumeOptions::Element::float32;
  bool swapped = false;            // bytes of each element, which are big-endian
  Shape extents;                   // channels, depth, height, width
  int64_t offset = 0;              // bytes before the first element
  float slope = 1, intercept = 0;  // value = slope * element + intercept
};

int64_t bytes_of(VolumeOptions::Element element);

// Bytes from the start of a file that nifti_layout() must see, where the file has as many.
constexpr int64_t nifti_header_bytes = 348;

// The layout that the header of a NIfTI-1 file (.nii) of `file_bytes` bytes declares; axes after the third
// are channels. All its values lie within the file. `header` may be any bytes. Throws UserError with the
// reason alone. Source: "NIfTI-1 data format", https://nifti.nimh.nih.gov/nifti-1.
VolumeLayout nifti_layout(std::string_view header, int64_t file_bytes);

// The layout of a file without header, all of which holds one volume (VolumeOptions::raw_extents). Throws
// UserError with the reason alone.
VolumeLayout raw_layout(const Shape& extents, VolumeOptions::Element element, int64_t offset,
                        int64_t file_bytes);

}  // namespace cortado
