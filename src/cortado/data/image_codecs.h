#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cortado/data/image.h"

namespace cortado {

// Decodes a JPEG or PNG file held in memory; EXIF orientation is applied. Throws BrokenRecord on anything
// else, and on truncated or corrupt data.
Image decode_image(std::span<const uint8_t> file, ColorMode mode);

// Encodes as "jpg" (quality 95, as OpenCV's default) or "png". Throws UserError on another format.
std::vector<uint8_t> encode_image(const Image& image, std::string_view format);

}  // namespace cortado
