#include "cortado/train/data_network.h"

#include "cortado/data/open_reader.h"
#include "cortado/layers/source.h"
#include "cortado/net/declare_net.h"

namespace cortado {

DataNetwork::DataNetwork(const NetFile& file, const caffe::NetState& state, const Options& options)
    : loaded_(load_network(
          file, state, [&](const LayerDeclaration& layer) { return open(layer, options); }, options.learns,
          options.gradients_from_outputs)) {}

std::vector<Shape> DataNetwork::open(const LayerDeclaration& layer, const Options& options) {
  const auto& source = dynamic_cast<const Source&>(*layer.layer);
  ReaderOptions reader{.seed = options.seed,
                       .phase = layer.phase.value(),
                       .tops = static_cast<int>(layer.tops.size()),
                       .top_names = layer.tops,
                       .layer_name = layer.name,
                       .threads = options.reader_threads,
                       .notice = options.notice};
  std::unique_ptr<Reader> opened = options.open_reader ? options.open_reader(source.options(), reader)
                                                       : open_reader(source.options(), reader);
  std::vector<Shape> shapes = opened->shapes();
  readers_[layer.name] = std::move(opened);
  positions_[layer.name] = 0;
  return shapes;
}

std::vector<const float*> DataNetwork::next(const std::string& layer) {
  Reader& reader = *readers_.at(layer);
  Batch batch = reader.next();
  positions_[layer] = batch.first_sample + batch_size_of(reader.shapes().front());
  return batch.tensors;
}

std::optional<BatchSource::Coming> DataNetwork::peek(const std::string& layer) const {
  const std::optional<Batch> batch = readers_.at(layer)->peek();
  if (!batch) return std::nullopt;
  return BatchSource::Coming{batch->tensors, batch->first_sample};
}

std::map<std::string, BatchSource> DataNetwork::sources(const std::map<std::string, BatchPart>& parts) {
  for (const auto& [layer, part] : parts) readers_.at(layer)->restrict_to(part);
  std::map<std::string, BatchSource> sources;
  for (const auto& [layer, reader] : readers_) {
    sources[layer] =
        BatchSource([this, name = layer] { return next(name); }, [this, name = layer] { return peek(name); });
  }
  return sources;
}

void DataNetwork::seek(const std::map<std::string, int64_t>& positions, int64_t otherwise) {
  for (auto& [layer, reader] : readers_) {
    auto known = positions.find(layer);
    int64_t sample =
        known != positions.end() ? known->second : otherwise * batch_size_of(reader->shapes().front());
    reader->seek(sample);
    positions_[layer] = sample;
  }
}

const Reader* DataNetwork::reader(const std::string& layer) const {
  const auto found = readers_.find(layer);
  return found == readers_.end() ? nullptr : found->second.get();
}

int64_t DataNetwork::batch_size() const {
  for (const auto& node : network().nodes()) {
    if (node.layer->is_source()) return network().tensors()[node.outputs.front()].shape[0];
  }
  return 0;
}

std::map<std::string, int64_t> DataNetwork::records() const {
  std::map<std::string, int64_t> records;
  for (const auto& [layer, reader] : readers_) records[layer] = reader->records();
  return records;
}

std::vector<std::pair<int64_t, int64_t>> DataNetwork::skipped_records() const {
  std::vector<std::pair<int64_t, int64_t>> skipped;
  int64_t layer = 0;
  for (const auto& [name, reader] : readers_) {
    for (int64_t record : reader->skipped()) skipped.emplace_back(layer, record);
    ++layer;
  }
  return skipped;
}

std::vector<OutputValue> output_values(const Executor& executor) {
  std::vector<OutputValue> values;
  const Network& network = executor.network();
  for (TensorIndex index : network.outputs()) {
    const Network::Tensor& tensor = network.tensors()[index];
    double weight = network.nodes()[tensor.producer].loss_weights[tensor.producer_output];
    for (float value : executor.canonical_tensor(index)) values.push_back({tensor.name, value, weight});
  }
  return values;
}

}  // namespace cortado
