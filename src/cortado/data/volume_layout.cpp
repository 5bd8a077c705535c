#include "cortado/data/volume_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

namespace {

using Element = VolumeOptions::Element;

// Numbers of a NIfTI header by their offsets, in the order of bytes of the file.
class NiftiFields {
 public:
  explicit NiftiFields(std::string_view header) : header_(header) {
    if (header[0] == '\x1f' && header[1] == '\x8b')
      throw UserError("it is compressed; uncompress it (gunzip)");
    constexpr int32_t nifti_2 = 540;
    const auto own_size = [&] { return number<int32_t>(0); };
    swapped_ = own_size() != nifti_header_bytes && own_size() != nifti_2;
    if (own_size() == nifti_2) throw UserError("it is of format NIfTI-2; convert it to NIfTI-1");
    if (own_size() != nifti_header_bytes)
      throw UserError("it is no NIfTI file; name files of raw values otherwise than .nii");
  }

  bool swapped() const { return swapped_; }

  template <typename Number>
  Number number(size_t offset) const {
    std::array<char, sizeof(Number)> bytes;
    std::memcpy(bytes.data(), header_.data() + offset, bytes.size());
    if (swapped_) std::reverse(bytes.begin(), bytes.end());
    return std::bit_cast<Number>(bytes);
  }
  std::string_view magic() const { return header_.substr(344, 4); }

 private:
  std::string_view header_;
  bool swapped_ = false;
};

Element element_of(int datatype, int bits) {
  struct Known {
    int datatype, bits;
    Element element;
  };
  static constexpr Known known[] = {
      {2, 8, Element::uint8}, {4, 16, Element::int16}, {16, 32, Element::float32}};
  for (const Known& type : known) {
    if (type.datatype != datatype) continue;
    if (type.bits != bits)
      throw UserError(
          fmt::format("its values are of type {}, but of {} bits; it is damaged", datatype, bits));
    return type.element;
  }
  throw UserError(
      fmt::format("its values are of type {} of {} bits; convert them to uint8 (2), int16 (4) or "
                  "float32 (16)",
                  datatype, bits));
}

// Spoken order, from the header's, whose first axis is the fastest. No product overflows: all are at most the
// elements for which the file has room.
Shape extents_of(const NiftiFields& fields, int64_t room) {
  constexpr size_t first = 40, spatial = 3;
  const int axes = fields.number<int16_t>(first);
  if (axes < 1 || axes > 7) throw UserError(fmt::format("its header has {} axes; 1 to 7 are read", axes));
  int64_t extents[spatial] = {1, 1, 1}, channels = 1, elements = 1;
  for (size_t axis = 0; axis < static_cast<size_t>(axes); ++axis) {
    const int64_t extent = fields.number<int16_t>(first + sizeof(int16_t) * (axis + 1));
    if (extent < 1)
      throw UserError(fmt::format("extent {} of its header is {}; it must be 1 or more", axis + 1, extent));
    (axis < spatial ? extents[axis] : channels) *= extent;
    elements *= extent;
    if (elements > room)
      throw UserError(
          fmt::format("its header declares more values than the {} for which it has bytes; it is "
                      "truncated or damaged",
                      room));
  }
  return {channels, extents[2], extents[1], extents[0]};
}

int64_t offset_of(const NiftiFields& fields, int64_t file_bytes) {
  const double offset = fields.number<float>(108);
  if (!(offset >= static_cast<double>(nifti_header_bytes) && offset <= static_cast<double>(file_bytes)) ||
      offset != std::floor(offset))
    throw UserError(fmt::format("its values begin at byte {} of {} (vox_offset); it is truncated or damaged",
                                offset, file_bytes));
  return static_cast<int64_t>(offset);
}

// A slope of 0, or none, says that values are as they are stored.
void set_scaling(const NiftiFields& fields, VolumeLayout& layout) {
  const auto slope = fields.number<float>(112), intercept = fields.number<float>(116);
  if (slope == 0 || !std::isfinite(slope)) return;
  if (!std::isfinite(intercept))
    throw UserError(fmt::format("its values are scaled by {} and {} (scl_slope, scl_inter); it is damaged",
                                slope, intercept));
  layout.slope = slope;
  layout.intercept = intercept;
}

}  // namespace

int64_t bytes_of(Element element) {
  return element == Element::uint8 ? 1 : element == Element::int16 ? 2 : 4;
}

VolumeLayout nifti_layout(std::string_view header, int64_t file_bytes) {
  if (std::ssize(header) < nifti_header_bytes)
    throw UserError(
        fmt::format("it has {} bytes, fewer than a NIfTI header; it is truncated", header.size()));
  const NiftiFields fields(header);
  if (fields.magic() == std::string_view("ni1\0", 4))
    throw UserError("its values lie in a file of their own (.img); convert both to one .nii file");
  if (fields.magic() != std::string_view("n+1\0", 4))
    throw UserError("it is no NIfTI-1 file: its header does not end in n+1");
  VolumeLayout layout{.swapped = fields.swapped(), .extents = {}};
  layout.element = element_of(fields.number<int16_t>(70), fields.number<int16_t>(72));
  layout.offset = offset_of(fields, file_bytes);
  layout.extents = extents_of(fields, (file_bytes - layout.offset) / bytes_of(layout.element));
  set_scaling(fields, layout);
  return layout;
}

VolumeLayout raw_layout(const Shape& extents, Element element, int64_t offset, int64_t file_bytes) {
  const int64_t room = file_bytes < offset ? 0 : (file_bytes - offset) / bytes_of(element);
  int64_t elements = 1;
  bool fits = true;
  for (int64_t extent : extents.extents()) {
    fits = fits && extent <= room / elements;
    elements = fits ? elements * extent : 1;
  }
  if (!fits || offset + elements * bytes_of(element) != file_bytes)
    throw UserError(
        fmt::format("it has {} bytes, which are not one volume of {} values of {} bytes after {} "
                    "bytes; check raw_shape, the type and raw_offset",
                    file_bytes, extents.text(), bytes_of(element), offset));
  return {.element = element,
          .swapped = std::endian::native == std::endian::big,
          .extents = extents,
          .offset = offset};
}

}  // namespace cortado
