#include "cortado/data/datum.h"

#include <fmt/format.h>

#include "cortado/data/image_codecs.h"

namespace cortado {

void parse_datum(std::span<const uint8_t> value, caffe::Datum& datum) {
  if (value.size() > INT32_MAX || !datum.ParseFromArray(value.data(), static_cast<int>(value.size())))
    throw BrokenRecord("not a Datum");
}

void datum_pixels(const caffe::Datum& datum, ColorMode mode, DatumPixels& pixels) {
  if (datum.encoded()) {
    pixels.image =
        decode_image({reinterpret_cast<const uint8_t*>(datum.data().data()), datum.data().size()}, mode);
    pixels.view = pixels.image;
    return;
  }
  const int64_t channels = datum.channels(), height = datum.height(), width = datum.width();
  const bool has_bytes = !datum.data().empty();
  const auto values = static_cast<int64_t>(has_bytes ? datum.data().size() : datum.float_data_size());
  if (!is_one_image(values, channels, height, width))
    throw BrokenRecord(fmt::format("a Datum of {} values is not {}x{}x{} (channels, height, width)", values,
                                   channels, height, width));
  PixelView& view = pixels.view;
  view = {};
  if (has_bytes)
    view.bytes = reinterpret_cast<const uint8_t*>(datum.data().data());
  else
    view.floats = datum.float_data().data();
  view.channels = static_cast<int>(channels);
  view.height = static_cast<int>(height);
  view.width = static_cast<int>(width);
  view.planar = true;
}

caffe::Datum raw_datum(const Image& image, int label) {
  caffe::Datum datum;
  datum.set_channels(image.channels);
  datum.set_height(image.height);
  datum.set_width(image.width);
  datum.set_label(label);
  const int plane = image.height * image.width;
  std::string& data = *datum.mutable_data();
  data.resize(image.pixels.size());
  for (int c = 0; c < image.channels; ++c)
    for (int i = 0; i < plane; ++i)
      data[size_t{1} * c * plane + i] = static_cast<char>(image.pixels[size_t{1} * i * image.channels + c]);
  return datum;
}

}  // namespace cortado
