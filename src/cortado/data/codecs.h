#pragma once

#include "cortado/data/image.h"

namespace cortado {

// Largest image that is decoded (some 400 MiB in colour); more is taken for corrupt data.
constexpr int64_t max_image_pixels = int64_t{1} << 27;
// What a byte of a file can stand for: deflate packs at most 1032 bytes of rows into one; a JPEG needs a bit
// at least for a block of 64 pixels.
constexpr int64_t max_png_bytes_of_byte = 1032, max_jpeg_pixels_of_byte = 512;

Image decode_jpeg(std::span<const uint8_t> file, ColorMode mode);
std::vector<uint8_t> encode_jpeg(const Image& image, int quality);

Image decode_png(std::span<const uint8_t> file, ColorMode mode);
std::vector<uint8_t> encode_png(const Image& image);

// Orientation (1-8) from the payload of a JPEG's APP1 segment (EXIF 2.3, section 4.6.4, tag 0x0112);
// 1 when it holds none.
int exif_orientation(std::span<const uint8_t> app1);
// The image turned and mirrored so that it is upright.
Image upright(Image image, int orientation);

}  // namespace cortado
