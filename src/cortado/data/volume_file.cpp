#include "cortado/data/volume_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

namespace {

using Element = VolumeOptions::Element;

template <typename Stored>
void convert_elements(const char* bytes, const VolumeLayout& layout, std::span<float> values) {
  const bool scaled = layout.slope != 1 || layout.intercept != 0;
  for (float& value : values) {
    std::array<char, sizeof(Stored)> element;
    std::memcpy(element.data(), bytes, element.size());
    if (layout.swapped) std::reverse(element.begin(), element.end());
    value = static_cast<float>(std::bit_cast<Stored>(element));
    if (scaled) value = layout.slope * value + layout.intercept;
    bytes += element.size();
  }
}

// Bytes of a regular file.
int64_t size_of(int file, const std::string& path) {
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
    throw UserError(fmt::format("{} is no file; give the path of a volume", path));
  return status.st_size;
}

}  // namespace

VolumeFile::VolumeFile(std::string path, const std::optional<Raw>& raw)
    : path_(std::move(path)), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) throw UserError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  try {
    layout_ = read_layout(raw);
  } catch (...) {
    close(file_);
    throw;
  }
}

VolumeFile::~VolumeFile() { close(file_); }

VolumeLayout VolumeFile::read_layout(const std::optional<Raw>& raw) const {
  const int64_t size = size_of(file_, path_);
  const bool is_nifti = path_.ends_with(".nii");
  if (!is_nifti && !raw)
    throw UserError(fmt::format("{} is no NIfTI file (.nii); of files of raw values give raw_shape", path_));
  std::string header(is_nifti ? static_cast<size_t>(std::min(size, nifti_header_bytes)) : 0, '\0');
  read_bytes(0, header);
  try {
    return is_nifti ? nifti_layout(header, size) : raw_layout(raw->extents, raw->element, raw->offset, size);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path_, error.what()));
  }
}

void VolumeFile::read_bytes(int64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pread(file_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw UserError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (count == 0) throw UserError(fmt::format("{} ends at byte {}; it is being truncated", path_, offset));
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void VolumeFile::convert(const char* bytes, std::span<float> values) const {
  switch (layout_.element) {
    case Element::uint8:
      return convert_elements<uint8_t>(bytes, layout_, values);
    case Element::int16:
      return convert_elements<int16_t>(bytes, layout_, values);
    case Element::float32:
      return convert_elements<float>(bytes, layout_, values);
  }
}

// Rows of the whole width lie one after the other, so that several are read at a time.
void VolumeFile::read(const Box& box, const TakeRow& take) const {
  constexpr int64_t block = 1 << 20;  // bytes that are read at a time, or one row
  const Shape& extents = layout_.extents;
  const int64_t element = bytes_of(layout_.element), width = box[3].size(), row_bytes = width * element;
  if (box.empty()) return;
  const int64_t rows = width == extents[3] ? std::clamp<int64_t>(block / row_bytes, 1, box[2].size()) : 1;
  std::vector<char> bytes(static_cast<size_t>(rows * row_bytes));
  std::vector<float> values(static_cast<size_t>(width));
  for (int64_t c = box[0].begin; c < box[0].end; ++c)
    for (int64_t d = box[1].begin; d < box[1].end; ++d)
      for (int64_t first = box[2].begin; first < box[2].end; first += rows) {
        const int64_t end = std::min(first + rows, box[2].end);
        const int64_t at = ((c * extents[1] + d) * extents[2] + first) * extents[3] + box[3].begin;
        read_bytes(layout_.offset + at * element,
                   std::span(bytes).first(static_cast<size_t>((end - first) * row_bytes)));
        for (int64_t h = first; h < end; ++h) {
          convert(bytes.data() + (h - first) * row_bytes, values);
          take(c, d, h, values);
        }
      }
}

}  // namespace cortado
