#include <algorithm>

#include "cortado/data/codecs.h"

namespace cortado {

namespace {

// Reads unsigned integers of a TIFF structure; zero past its end.
struct TiffBytes {
  std::span<const uint8_t> bytes;
  bool big_endian = false;

  uint32_t number(size_t at, int size) const {
    if (at > bytes.size() || bytes.size() - at < static_cast<size_t>(size)) return 0;
    uint32_t value = 0;
    for (int i = 0; i < size; ++i) value = value << 8 | bytes[at + (big_endian ? i : size - 1 - i)];
    return value;
  }
};

}  // namespace

int exif_orientation(std::span<const uint8_t> app1) {
  constexpr uint8_t magic[] = {'E', 'x', 'i', 'f', 0, 0};
  if (app1.size() < 14 || !std::equal(std::begin(magic), std::end(magic), app1.begin())) return 1;
  TiffBytes tiff{app1.subspan(6)};
  tiff.big_endian = tiff.bytes[0] == 'M';
  const size_t directory = tiff.number(4, 4);
  const uint32_t entries = tiff.number(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (entry >= tiff.bytes.size()) return 1;
    if (tiff.number(entry, 2) != 0x0112) continue;
    const uint32_t orientation = tiff.number(entry + 8, 2);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

// Orientations 5-8 exchange rows and columns; then the row order is reversed for 3, 4, 7 and 8 and the
// column order for 2, 3, 6 and 7 of the *upright* image's axes.
Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool transposed = orientation >= 5;
  const bool flip_rows = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  const bool flip_columns = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  Image result(transposed ? image.width : image.height, transposed ? image.height : image.width,
               image.channels);
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x) {
      int row = flip_rows ? result.height - 1 - y : y, column = flip_columns ? result.width - 1 - x : x;
      if (transposed) std::swap(row, column);
      std::copy_n(image.row(row) + column * image.channels, image.channels,
                  result.row(y) + x * image.channels);
    }
  }
  return result;
}

}  // namespace cortado
