#include "cortado/data/image.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <memory>

namespace cortado {

Image convert_color(Image image, ColorMode mode) {
  int channels = mode == ColorMode::color ? 3 : mode == ColorMode::gray ? 1 : image.channels;
  if (channels == image.channels) return image;
  Image result(image.height, image.width, channels);
  size_t pixels = result.pixels.size() / channels;
  const uint8_t* from = image.pixels.data();
  uint8_t* to = result.pixels.data();
  for (size_t i = 0; i < pixels; ++i, from += image.channels, to += channels) {
    if (channels == 1) {
      *to = gray_of(from);
    } else if (image.channels == 1) {
      to[0] = to[1] = to[2] = *from;
    } else {
      std::copy_n(from, 3, to);
    }
  }
  return result;
}

std::vector<uint8_t> read_bytes(const std::string& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw BrokenRecord(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  std::vector<uint8_t> bytes;
  std::array<uint8_t, 1 << 16> buffer;
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + got);
  if (std::ferror(file.get()))
    throw BrokenRecord(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  return bytes;
}

}  // namespace cortado
