#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

// One record of a data set cannot be read. `what()` gives the reason alone; whoever knows the file and key
// adds them. Readers may skip such records (SourceOptions::skip_corrupt).
class BrokenRecord : public UserError {
 public:
  using UserError::UserError;
};

// A decoded image: rows top to bottom, channels interleaved, in Caffe's (OpenCV's) order blue, green, red
// (, alpha).
struct Image {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  Image() = default;
  Image(int height, int width, int channels)
      : height(height), width(width), channels(channels), pixels(size_t{1} * height * width * channels) {}
  size_t row_bytes() const { return static_cast<size_t>(width) * channels; }
  uint8_t* row(int y) { return pixels.data() + y * row_bytes(); }
  const uint8_t* row(int y) const { return pixels.data() + y * row_bytes(); }
  bool operator==(const Image&) const = default;
};

// True when so many values are one image of these extents; any number may be wrong.
inline bool is_one_image(int64_t values, int64_t channels, int64_t height, int64_t width) {
  if (channels < 1 || height < 1 || width < 1 || height > values || width > values / height) return false;
  return values % (height * width) == 0 && values / (height * width) == channels;
}

// The channels that a decoder gives: those of the file (1 grey, 3 colour, 4 colour and alpha), always 3, or
// always 1.
enum class ColorMode { native, color, gray };

// Grey value 0.299 R + 0.587 G + 0.114 B, rounded, of one pixel of three channels or more.
inline uint8_t gray_of(const uint8_t* bgr) {
  return static_cast<uint8_t>((bgr[0] * 1868 + bgr[1] * 9617 + bgr[2] * 4899 + 8192) >> 14);
}
// The image with the channels `mode` asks for.
Image convert_color(Image image, ColorMode mode);

// The whole file. Throws BrokenRecord when it cannot be read.
std::vector<uint8_t> read_bytes(const std::string& path);

}  // namespace cortado
