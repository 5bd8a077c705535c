#include "cortado/app/resident_data.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/random.h"
#include "cortado/data/reader.h"
#include "cortado/layers/source.h"

namespace cortado {
namespace {

// "3x227x227" behind the batch size.
Shape parse_input_shape(const std::string& text, int batch) {
  Shape shape{batch};
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int64_t extent = 0;
    auto [stop, error] = std::from_chars(at, end, extent);
    bool separated = stop == end || (*stop == 'x' && stop + 1 < end);
    if (error != std::errc() || extent < 1 || !separated) {
      throw UserError(fmt::format("--input-shape {}: give extents like 3x227x227", text));
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

std::vector<Shape> source_shapes(const LayerDeclaration& layer, const ModelOptions& options, Phase phase) {
  using Kind = SourceOptions::Kind;
  const SourceOptions& source = dynamic_cast<const Source&>(*layer.layer).options();
  bool declared =
      source.kind != Kind::data && source.kind != Kind::image_data && source.kind != Kind::hdf5_data;
  if (declared) return declared_source_shapes(layer);
  if (!options.input_shape.empty()) {
    return with_labels(parse_input_shape(options.input_shape, source.batch_size), layer.tops.size());
  }
  ReaderOptions reader{.phase = phase,
                       .tops = static_cast<int>(layer.tops.size()),
                       .top_names = layer.tops,
                       .layer_name = layer.name};
  try {
    return open_reader(source, reader)->shapes();
  } catch (const UserError& error) {
    int crop = source.transform.crop_size;
    if (crop == 0) {
      throw UserError(
          fmt::format("{}; without the data, give --input-shape, for example 3x32x32", error.what()));
    }
    bool gray = source.transform.mean_values.size() == 1 || source.transform.force_gray;
    return with_labels({source.batch_size, gray ? 1 : 3, crop, crop}, layer.tops.size());
  }
}

// Classes of the label tensor `index`: channels of the first input of a layer that reads it beside another.
int64_t label_classes(const Network& network, int index) {
  for (int consumer : network.tensors()[static_cast<size_t>(index)].consumers) {
    const Network::Node& node = network.nodes()[static_cast<size_t>(consumer)];
    if (node.inputs.size() < 2 || node.inputs.front() == index) continue;
    const Shape& scores = network.tensors()[static_cast<size_t>(node.inputs.front())].shape;
    if (scores.rank() > 1) return scores[1];
  }
  return 1;
}

}  // namespace

LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise) {
  NetFile file = read_net(options.model);
  if (options.batch > 0) override_batch(file.net, options.batch);
  caffe::NetState state = net_state_of(options, otherwise);
  Phase phase = state.phase() == caffe::TRAIN ? Phase::train : Phase::test;
  return load_network(file, state,
                      [&](const LayerDeclaration& layer) { return source_shapes(layer, options, phase); });
}

ResidentData::ResidentData(const Network& network) {
  for (const Network::Node& node : network.nodes()) {
    if (!node.layer->is_source()) continue;
    auto& tensors = batches_[node.name];
    for (size_t top = 0; top < node.outputs.size(); ++top) {
      RandomStream random{.seed = 1, .owner = RandomStream::owner_of(node.name + std::to_string(top))};
      int64_t classes = top > 0 ? label_classes(network, node.outputs[top]) : 0;
      auto size = static_cast<size_t>(network.tensors()[static_cast<size_t>(node.outputs[top])].shape.size());
      std::vector<float> values(size);
      for (size_t i = 0; i < size; ++i) {
        double uniform = random.uniform(i);
        values[i] = static_cast<float>(top > 0 ? std::floor(uniform * static_cast<double>(classes))
                                               : 2 * uniform - 1);
      }
      tensors.push_back(std::move(values));
    }
  }
}

std::map<std::string, BatchSource> ResidentData::sources() const {
  std::map<std::string, BatchSource> sources;
  for (const auto& [layer, tensors] : batches_) {
    std::vector<const float*> pointers;
    for (const auto& tensor : tensors) pointers.push_back(tensor.data());
    sources[layer] = [pointers] { return pointers; };
  }
  return sources;
}

}  // namespace cortado
