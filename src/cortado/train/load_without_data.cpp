#include "cortado/train/load_without_data.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/reader.h"
#include "cortado/layers/source.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"

namespace cortado {
namespace {

// The batch size, then the extents of `text` ("3x227x227").
Shape parse_input_shape(const std::string& text, int batch) {
  Shape shape{batch};
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t extent = 0;
    auto [stop, error] = std::from_chars(at, end, extent);
    bool separated = stop == end || (*stop == 'x' && stop + 1 < end);
    if (error != std::errc() || extent < 1 || !separated) {
      throw UserError(
          fmt::format("input shape {}: give extents like 3x227x227, and those of labels after a comma where "
                      "each position has one",
                      text));
    }
    shape.append(extent);
    at = stop == end ? end : stop + 1;
  }
  return shape;
}

std::vector<Shape> with_labels(const Shape& images, size_t tops) {
  std::vector<Shape> shapes(tops, Shape{images[0]});
  shapes.front() = images;
  return shapes;
}

std::vector<Shape> source_shapes(const LayerDeclaration& layer, const std::string& input_shape) {
  using Kind = SourceOptions::Kind;
  const SourceOptions& source = dynamic_cast<const Source&>(*layer.layer).options();
  const bool declared = source.kind != Kind::data && source.kind != Kind::image_data &&
                        source.kind != Kind::hdf5_data && source.kind != Kind::window_data &&
                        source.kind != Kind::volume_data;
  if (declared) return declared_source_shapes(layer);
  if (!input_shape.empty()) {
    return parse_input_shapes(input_shape, source.batch_size, layer.tops.size());
  }
  ReaderOptions reader{.phase = layer.phase.value(),
                       .tops = static_cast<int>(layer.tops.size()),
                       .top_names = layer.tops,
                       .layer_name = layer.name};
  try {
    return open_reader(source, reader)->shapes();
  } catch (const UserError& error) {
    int crop = source.transform.crop_size;
    if (crop == 0) {
      throw UserError(
          fmt::format("{}; without the data, give an input shape, for example 3x32x32", error.what()));
    }
    bool gray = source.transform.mean_values.size() == 1 || source.transform.force_gray;
    return with_labels({source.batch_size, gray ? 1 : 3, crop, crop}, layer.tops.size());
  }
}

}  // namespace

std::vector<Shape> parse_input_shapes(const std::string& text, int batch, size_t tops) {
  std::vector<Shape> shapes;
  for (const std::string& part : split_list(text)) shapes.push_back(parse_input_shape(part, batch));
  if (shapes.empty() || shapes.size() > tops)
    throw UserError(
        fmt::format("input shape {}: give one shape, or up to {} with commas between them", text, tops));
  shapes.resize(tops, Shape{batch});
  return shapes;
}

LoadedNetwork load_without_data(NetFile file, const caffe::NetState& state, const std::string& input_shape,
                                int batch) {
  if (!input_shape.empty()) {
    give_input_shapes(
        file, [&](size_t blobs) { return parse_input_shapes(input_shape, std::max(1, batch), blobs); });
  }
  return load_network(file, state,
                      [&](const LayerDeclaration& layer) { return source_shapes(layer, input_shape); });
}

}  // namespace cortado
