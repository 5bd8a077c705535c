#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "cortado/base/shape.h"
#include "cortado/layers/source.h"

namespace cortado {

// Files of volumes, written from the description of NIfTI-1.

template <typename Number>
void put_number(std::string& bytes, size_t offset, Number number, bool big_endian = false) {
  std::array<char, sizeof(Number)> of_number;
  std::memcpy(of_number.data(), &number, sizeof number);
  if (big_endian != (std::endian::native == std::endian::big))
    std::reverse(of_number.begin(), of_number.end());
  std::copy(of_number.begin(), of_number.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

struct NiftiFile {
  Shape extents;  // channels, depth, height, width
  VolumeOptions::Element element = VolumeOptions::Element::float32;
  bool big_endian = false;
  int64_t offset = 352;
  float slope = 0, intercept = 0;

  // The first 352 bytes.
  std::string header() const {
    static constexpr int16_t types[] = {2, 4, 16}, bits[] = {8, 16, 32};
    std::string bytes(352, '\0');
    put_number<int32_t>(bytes, 0, 348, big_endian);
    const int16_t axes = extents[0] > 1 ? 4 : 3;
    const int64_t in_order[] = {axes, extents[3], extents[2], extents[1], extents[0], 1, 1, 1};
    for (size_t i = 0; i < 8; ++i)
      put_number(bytes, 40 + 2 * i, static_cast<int16_t>(in_order[i]), big_endian);
    put_number(bytes, 70, types[static_cast<size_t>(element)], big_endian);
    put_number(bytes, 72, bits[static_cast<size_t>(element)], big_endian);
    put_number(bytes, 108, static_cast<float>(offset), big_endian);
    put_number(bytes, 112, slope, big_endian);
    put_number(bytes, 116, intercept, big_endian);
    std::memcpy(&bytes[344], "n+1", 4);
    return bytes;
  }
};

// Values, row-major, as elements of a file.
inline std::string elements_as(VolumeOptions::Element element, bool big_endian,
                               const std::vector<float>& values) {
  using Element = VolumeOptions::Element;
  static constexpr size_t sizes[] = {1, 2, 4};
  const size_t size = sizes[static_cast<size_t>(element)];
  std::string bytes(values.size() * size, '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    if (element == Element::uint8) put_number(bytes, i, static_cast<uint8_t>(values[i]));
    if (element == Element::int16) put_number(bytes, 2 * i, static_cast<int16_t>(values[i]), big_endian);
    if (element == Element::float32) put_number(bytes, 4 * i, values[i], big_endian);
  }
  return bytes;
}

inline std::string nifti(const NiftiFile& file, const std::vector<float>& values) {
  std::string bytes = file.header();
  bytes.resize(static_cast<size_t>(file.offset), '\0');
  return bytes + elements_as(file.element, file.big_endian, values);
}

// Whole numbers from -`below` or, for labels, 0 to `below` - 1; for each element another sequence.
inline std::vector<float> volume_values(int64_t count, int seed, int below, bool positive) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t mixed = (i * 2654435761LL + seed * 40503LL) >> 7;
    values.push_back(static_cast<float>(positive ? mixed % below : mixed % (2 * below) - below));
  }
  return values;
}

}  // namespace cortado
