#pragma once

#include "cortado/data/image.h"
#include "cortado/data/transform.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

// The decoded pixels of a Datum: a view of the Datum itself when it is raw, else of `image`.
struct DatumPixels {
  Image image;
  PixelView view;
};

// Parses one database value into `datum`. Throws BrokenRecord.
void parse_datum(std::span<const uint8_t> value, caffe::Datum& datum);

// Decodes an encoded Datum, or checks a raw one: bytes in `data` or floats in `float_data`, channels x height
// x width. `mode` applies to encoded ones only, as in Caffe. Throws BrokenRecord. The result borrows from
// `datum`, and must stay where it is put.
void datum_pixels(const caffe::Datum& datum, ColorMode mode, DatumPixels& pixels);

// A raw Datum: channels x height x width bytes.
caffe::Datum raw_datum(const Image& image, int label);

}  // namespace cortado
