#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include "cortado/data/codecs.h"

namespace cortado {

namespace {

// libjpeg reports through these functions; `longjmp` leaves its C frames, so between setjmp and the last
// library call no C++ object is made.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void leave_jpeg(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  errors->manager.format_message(common, errors->message);
  std::longjmp(errors->leave, 1);
}

// Warnings that mean lost or invented pixels are errors; harmless ones (bytes between segments, unusual
// Adobe markers) pass.
void judge_jpeg_warning(j_common_ptr common, int level) {
  if (level >= 0) return;
  switch (common->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_TOO_MUCH_DATA:
      return;
    default:
      leave_jpeg(common);
  }
}

void report_to(JpegErrors& errors, jpeg_error_mgr*& manager) {
  manager = jpeg_std_error(&errors.manager);
  manager->error_exit = leave_jpeg;
  manager->emit_message = judge_jpeg_warning;
}

struct Decompression {
  jpeg_decompress_struct jpeg{};
  JpegErrors errors{};
  Decompression() { report_to(errors, jpeg.err); }
  ~Decompression() { jpeg_destroy_decompress(&jpeg); }
};

bool read_jpeg_header(Decompression& from, std::span<const uint8_t> file) {
  if (setjmp(from.errors.leave)) return false;
  jpeg_create_decompress(&from.jpeg);
  jpeg_mem_src(&from.jpeg, file.data(), file.size());
  jpeg_save_markers(&from.jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&from.jpeg, TRUE);
  return true;
}

bool read_jpeg_pixels(Decompression& from, uint8_t* pixels, size_t row_bytes) {
  if (setjmp(from.errors.leave)) return false;
  jpeg_start_decompress(&from.jpeg);
  while (from.jpeg.output_scanline < from.jpeg.output_height) {
    JSAMPROW row = pixels + from.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&from.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&from.jpeg);
  return true;
}

// libjpeg gives cyan, magenta, yellow, black as stored; Adobe's files store them inverted. Red is
// (1 - cyan)(1 - black), and so on.
Image bgr_from_cmyk(const Image& cmyk, bool inverted) {
  Image image(cmyk.height, cmyk.width, 3);
  const uint8_t flip = inverted ? 0 : 0xFF;
  const uint8_t* from = cmyk.pixels.data();
  for (size_t i = 0; i < image.pixels.size(); i += 3, from += 4) {
    int black = from[3] ^ flip;
    for (int c = 0; c < 3; ++c)
      image.pixels[i + c] = static_cast<uint8_t>(((from[2 - c] ^ flip) * black + 127) / 255);
  }
  return image;
}

BrokenRecord corrupt_jpeg(const JpegErrors& errors) {
  return BrokenRecord(fmt::format("corrupt JPEG: {}", errors.message));
}

struct Compression {
  jpeg_compress_struct jpeg{};
  JpegErrors errors{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  Compression() { report_to(errors, jpeg.err); }
  ~Compression() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

bool write_jpeg(Compression& to, const Image& image, int quality) {
  if (setjmp(to.errors.leave)) return false;
  jpeg_create_compress(&to.jpeg);
  jpeg_mem_dest(&to.jpeg, &to.bytes, &to.size);
  to.jpeg.image_width = image.width;
  to.jpeg.image_height = image.height;
  to.jpeg.input_components = image.channels;
  to.jpeg.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&to.jpeg);
  jpeg_set_quality(&to.jpeg, quality, TRUE);
  jpeg_start_compress(&to.jpeg, TRUE);
  while (to.jpeg.next_scanline < to.jpeg.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(image.row(to.jpeg.next_scanline));
    jpeg_write_scanlines(&to.jpeg, &row, 1);
  }
  jpeg_finish_compress(&to.jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const uint8_t> file, ColorMode mode) {
  Decompression from;
  if (!read_jpeg_header(from, file)) throw corrupt_jpeg(from.errors);
  jpeg_decompress_struct& jpeg = from.jpeg;
  if (int64_t{jpeg.image_width} * jpeg.image_height > max_image_pixels)
    throw BrokenRecord(
        fmt::format("JPEG of {}x{} pixels is larger than supported", jpeg.image_width, jpeg.image_height));
  if (int64_t{jpeg.image_width} * jpeg.image_height > max_jpeg_pixels_of_byte * std::ssize(file))
    throw BrokenRecord(fmt::format("corrupt JPEG: {}x{} pixels cannot be in {} bytes", jpeg.image_width,
                                   jpeg.image_height, file.size()));
  // before jpeg_finish_decompress, which frees the markers
  int orientation = 1;
  for (auto* marker = jpeg.marker_list; marker && orientation == 1; marker = marker->next)
    orientation = exif_orientation({marker->data, marker->data_length});
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  const bool has_gray = jpeg.jpeg_color_space == JCS_GRAYSCALE || jpeg.jpeg_color_space == JCS_YCbCr;
  const bool gray =
      jpeg.jpeg_color_space == JCS_GRAYSCALE ? mode != ColorMode::color : has_gray && mode == ColorMode::gray;
  jpeg.out_color_space = cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_EXT_BGR;
  Image image(jpeg.image_height, jpeg.image_width, cmyk ? 4 : gray ? 1 : 3);
  if (!read_jpeg_pixels(from, image.pixels.data(), image.row_bytes())) throw corrupt_jpeg(from.errors);
  if (cmyk) image = bgr_from_cmyk(image, jpeg.saw_Adobe_marker);
  return upright(convert_color(std::move(image), mode), orientation);
}

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  if (image.channels == 4) return encode_jpeg(convert_color(image, ColorMode::color), quality);
  Compression to;
  if (!write_jpeg(to, image, quality))
    throw UserError(fmt::format("cannot encode a JPEG: {}", to.errors.message));
  return {to.bytes, to.bytes + to.size};
}

}  // namespace cortado
