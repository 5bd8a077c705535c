#include "cortado/api/impl/reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/api/impl/network.h"
#include "cortado/base/error.h"
#include "cortado/data/callback_reader.h"
#include "cortado/data/open_reader.h"

namespace cortado::api {
namespace {

// The shapes of a layer's tops: by its batch size and samples of such shapes, else as it declares them.
std::vector<cortado::Shape> shapes_of(const SourceOptions& source, const ReaderOptions& reader,
                                      const std::vector<Shape>& sample_shapes) {
  using Kind = SourceOptions::Kind;
  const bool declared =
      source.kind == Kind::input || source.kind == Kind::memory_data || source.kind == Kind::dummy_data;
  if (sample_shapes.empty() && declared) return open_reader(source, reader)->shapes();
  if (std::ssize(sample_shapes) != reader.tops)
    throw UserError(fmt::format("its data have {} shapes of samples for {} tops; give one for each",
                                sample_shapes.size(), reader.tops));
  const int64_t batch =
      declared ? batch_size_of(open_reader(source, reader)->shapes()[0]) : source.batch_size;
  std::vector<cortado::Shape> shapes;
  for (const Shape& sample : sample_shapes) {
    cortado::Shape shape{batch};
    for (int64_t extent : sample) {
      if (extent < 1)
        throw UserError(
            fmt::format("a shape of its data's samples has the extent {}; give 1 or more", extent));
      shape.append(extent);
    }
    shapes.push_back(shape);
  }
  return shapes;
}

CallbackReader::Fill fill_of(const Data::Source& source, const ReaderOptions& options, int64_t batch,
                             Phase phase) {
  return [fill = source.fill, names = options.top_names, layer = options.layer_name, batch,
          phase](const CallbackReader::Request& wanted) {
    BatchRequest request{.layer = layer,
                         .phase = phase,
                         .number = wanted.number,
                         .batch = batch,
                         .begin = wanted.samples.begin,
                         .end = wanted.samples.end,
                         .tops = {}};
    for (size_t top = 0; top < wanted.tops.size(); ++top)
      request.tops.push_back({names[top], shape_of(wanted.shapes[top]), wanted.tops[top]});
    fill(request);
  };
}

}  // namespace

std::unique_ptr<Reader> reader_of(const Data::Source& source, const ReaderOptions& options,
                                  std::vector<cortado::Shape> shapes) {
  const Phase phase = options.phase == cortado::Phase::train ? Phase::train : Phase::test;
  CallbackReader::Fill fill = fill_of(source, options, batch_size_of(shapes[0]), phase);
  return std::make_unique<CallbackReader>(std::move(shapes), std::move(fill));
}

OpenReader DataReaders::opener() {
  return [this](const SourceOptions& source, const ReaderOptions& options) { return open(source, options); };
}

std::unique_ptr<Reader> DataReaders::open(const SourceOptions& source, const ReaderOptions& options) {
  const Phase phase = options.phase == cortado::Phase::train ? Phase::train : Phase::test;
  opened_.insert(options.layer_name);
  const Data::Source* own = data_.find(options.layer_name, phase);
  if (own == nullptr) return open_reader(source, options);
  return reader_of(*own, options, shapes_of(source, options, own->sample_shapes));
}

void DataReaders::check_used() const {
  for (const std::string& layer : data_.layers())
    if (!opened_.contains(layer))
      throw UserError(
          fmt::format("data of layer '{}': no net has a source layer of that name (there are: {})", layer,
                      fmt::join(opened_, ", ")));
}

}  // namespace cortado::api
