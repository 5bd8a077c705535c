#include <csetjmp>
#include <cstring>
#include <fmt/format.h>
#include <png.h>

#include "cortado/data/codecs.h"

namespace cortado {

namespace {

struct PngErrors {
  char message[256] = "";
};

// Between setjmp and the last library call no C++ object is made, as with libjpeg.
[[noreturn]] void leave_png(png_structp png, png_const_charp message) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  std::strncpy(errors->message, message, sizeof(errors->message) - 1);
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep to, size_t count) {
  auto* rest = static_cast<std::span<const uint8_t>*>(png_get_io_ptr(png));
  if (count > rest->size()) png_error(png, "premature end of file");
  std::memcpy(to, rest->data(), count);
  *rest = rest->subspan(count);
}

struct PngReading {
  PngErrors errors;
  std::span<const uint8_t> rest;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors, leave_png, ignore_png_warning);
  png_infop info = png_create_info_struct(png);
  int height = 0, width = 0, channels = 0;
  int64_t row_bytes = 0;  // as they are in the file
  explicit PngReading(std::span<const uint8_t> file) : rest(file) {
    if (!png || !info) throw std::bad_alloc();
    png_set_read_fn(png, &rest, read_png_bytes);
  }
  ~PngReading() { png_destroy_read_struct(&png, &info, nullptr); }
};

bool read_png_size(PngReading& from) {
  if (setjmp(png_jmpbuf(from.png))) return false;
  png_read_info(from.png, from.info);
  from.height = static_cast<int>(png_get_image_height(from.png, from.info));
  from.width = static_cast<int>(png_get_image_width(from.png, from.info));
  from.row_bytes = static_cast<int64_t>(png_get_rowbytes(from.png, from.info));
  return true;
}

// Asks libpng for 8-bit grey, BGR or BGRA (grey with alpha becomes BGRA, as OpenCV gives it).
bool choose_png_channels(PngReading& from) {
  if (setjmp(png_jmpbuf(from.png))) return false;
  png_set_expand(from.png);
  png_set_strip_16(from.png);
  const int color = png_get_color_type(from.png, from.info);
  const bool alpha = (color & PNG_COLOR_MASK_ALPHA) || png_get_valid(from.png, from.info, PNG_INFO_tRNS);
  if (alpha) png_set_gray_to_rgb(from.png);
  if (alpha || (color & PNG_COLOR_MASK_COLOR)) png_set_bgr(from.png);
  png_set_interlace_handling(from.png);
  png_read_update_info(from.png, from.info);
  from.channels = png_get_channels(from.png, from.info);
  return true;
}

bool read_png_pixels(PngReading& from, png_bytepp rows) {
  if (setjmp(png_jmpbuf(from.png))) return false;
  png_read_image(from.png, rows);
  png_read_end(from.png, nullptr);
  return true;
}

BrokenRecord corrupt_png(const PngErrors& errors) {
  return BrokenRecord(fmt::format("corrupt PNG: {}", errors.message));
}

struct PngWriting {
  PngErrors errors;
  std::vector<uint8_t> bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, leave_png, ignore_png_warning);
  png_infop info = png_create_info_struct(png);
  PngWriting() {
    if (!png || !info) throw std::bad_alloc();
  }
  ~PngWriting() { png_destroy_write_struct(&png, &info); }
};

void append_png_bytes(png_structp png, png_bytep from, size_t count) {
  auto* bytes = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(png));
  bytes->insert(bytes->end(), from, from + count);
}

bool write_png(PngWriting& to, const Image& image) {
  if (setjmp(png_jmpbuf(to.png))) return false;
  png_set_write_fn(to.png, &to.bytes, append_png_bytes, nullptr);
  const int color = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                    : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                          : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(to.png, to.info, image.width, image.height, 8, color, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(to.png, to.info);
  if (image.channels >= 3) png_set_bgr(to.png);
  for (int y = 0; y < image.height; ++y) png_write_row(to.png, image.row(y));
  png_write_end(to.png, nullptr);
  return true;
}

}  // namespace

Image decode_png(std::span<const uint8_t> file, ColorMode mode) {
  PngReading from(file);
  if (!read_png_size(from)) throw corrupt_png(from.errors);
  if (int64_t{from.height} * from.width > max_image_pixels)
    throw BrokenRecord(fmt::format("PNG of {}x{} pixels is larger than supported", from.width, from.height));
  if (from.row_bytes > max_png_bytes_of_byte * std::ssize(file) / from.height)
    throw BrokenRecord(
        fmt::format("corrupt PNG: {}x{} pixels cannot be in {} bytes", from.width, from.height, file.size()));
  if (!choose_png_channels(from)) throw corrupt_png(from.errors);
  Image image(from.height, from.width, from.channels);
  std::vector<png_bytep> rows(from.height);
  for (int y = 0; y < from.height; ++y) rows[y] = image.row(y);
  if (!read_png_pixels(from, rows.data())) throw corrupt_png(from.errors);
  return convert_color(std::move(image), mode);
}

std::vector<uint8_t> encode_png(const Image& image) {
  PngWriting to;
  if (!write_png(to, image)) throw UserError(fmt::format("cannot encode a PNG: {}", to.errors.message));
  return std::move(to.bytes);
}

}  // namespace cortado
