#include "cortado/data/image_codecs.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/data/codecs.h"

namespace cortado {

Image decode_image(std::span<const uint8_t> file, ColorMode mode) {
  constexpr std::array<uint8_t, 3> jpeg_magic{0xFF, 0xD8, 0xFF};
  constexpr std::array<uint8_t, 8> png_magic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  auto starts_with = [&](const auto& magic) {
    return file.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.begin());
  };
  if (starts_with(jpeg_magic)) return decode_jpeg(file, mode);
  if (starts_with(png_magic)) return decode_png(file, mode);
  if (file.empty()) throw BrokenRecord("the image is empty");
  throw BrokenRecord("neither a JPEG nor a PNG image; convert it to one of these");
}

std::vector<uint8_t> encode_image(const Image& image, std::string_view format) {
  if (format == "jpg" || format == "jpeg") return encode_jpeg(image, 95);
  if (format == "png") return encode_png(image);
  throw UserError(fmt::format("cannot encode images as '{}'; use jpg or png", format));
}

}  // namespace cortado
