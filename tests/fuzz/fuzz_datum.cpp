// Any bytes are either a Datum whose pixels can be transformed, or a BrokenRecord (or a UserError where its
// size does not fit).
#include <cstddef>
#include <cstdint>

#include "cortado/data/datum.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  constexpr int crop = 8;
  const RandomStream stream{1, 0, 1};
  try {
    caffe::Datum datum;
    parse_datum({data, size}, datum);
    for (ColorMode mode : {ColorMode::native, ColorMode::gray}) {
      DatumPixels pixels;
      datum_pixels(datum, mode, pixels);
      const PixelView& view = pixels.view;
      if (int64_t{view.channels} * view.height * view.width > 1 << 22) return 0;  // slow, nothing new
      std::vector<float> output(size_t{1} * view.channels * crop * crop);
      for (bool resized : {false, true}) {
        const TransformOptions options{.crop_size = crop, .random_resized_crop = resized, .contrast = 0.5};
        Transformer transformer(options, Phase::train, stream, view.channels, view.height, view.width);
        transformer.apply(view, 0, output.data());
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
