#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cortado/data/reader.h"
#include "cortado/exec/executor.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"

namespace cortado {

// Opens the reader of a source layer.
using OpenReader = std::function<std::unique_ptr<Reader>(const SourceOptions&, const ReaderOptions&)>;

// A network together with the readers of its source layers.
class DataNetwork {
 public:
  struct Options {
    uint64_t seed = 1;
    int reader_threads = 1;
    std::optional<bool> learns = {};      // as in build_network()
    bool gradients_from_outputs = false;  // the same
    OpenReader open_reader = {};          // null: what the file names
    Notices notice = {};                  // as ReaderOptions
  };
  // Builds the network that `state` asks for and opens a reader for each of its source layers.
  DataNetwork(const NetFile& file, const caffe::NetState& state, const Options& options);

  const Network& network() const { return loaded_.network; }
  const LoadedNetwork& loaded() const { return loaded_; }

  // What an Executor reads from; must not outlive this object. Each named source layer loads only this part
  // of its batches (Program::samples), the others whole ones. Before the first batch.
  std::map<std::string, BatchSource> sources(const std::map<std::string, BatchPart>& parts = {});

  // Per source layer, the stream position of the first sample of the next batch.
  const std::map<std::string, int64_t>& positions() const { return positions_; }
  // Continues there; layers that are not named begin at `otherwise` batches.
  void seek(const std::map<std::string, int64_t>& positions, int64_t otherwise);

  // The reader of a source layer; null: there is none of that name.
  const Reader* reader(const std::string& layer) const;

  int64_t batch_size() const;  // of the first source layer; 0 when there is none
  // Per source layer, the samples after which it begins again (Reader::records).
  std::map<std::string, int64_t> records() const;
  // Broken records passed over so far, of those that this rank read: (source layer, record), by number.
  std::vector<std::pair<int64_t, int64_t>> skipped_records() const;

 private:
  std::vector<Shape> open(const LayerDeclaration& layer, const Options& options);
  std::vector<const float*> next(const std::string& layer);
  std::optional<BatchSource::Coming> peek(const std::string& layer) const;

  std::map<std::string, std::unique_ptr<Reader>> readers_;
  std::map<std::string, int64_t> positions_;
  LoadedNetwork loaded_;
};

// One number that a network puts out.
struct OutputValue {
  std::string name;  // the blob's
  double value = 0;
  double loss_weight = 0;
};

// All elements of all outputs of the network, in order (Caffe's "net output #i").
std::vector<OutputValue> output_values(const Executor& executor);

}  // namespace cortado
