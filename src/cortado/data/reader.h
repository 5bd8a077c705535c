#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/layers/source.h"

namespace cortado {

// One batch as the compute lane takes it: dense float tensors, channels last, one per top of the source layer
// (images first, then labels). The memory belongs to the reader until the next call of next().
struct Batch {
  std::vector<const float*> tensors;
  int64_t first_sample = 0;  // position of sample 0 in the stream of all samples ever read
};

// Reads, decodes and transforms samples in the background so that the compute lane never waits on a cached
// data set. Sample order and each sample's randomness depend on (seed, stream position) alone, never on
// threads or ranks. Every error names file and key.
class Reader {
 public:
  virtual ~Reader() = default;
  // Shapes of all tops, batch_size first.
  virtual std::vector<Shape> shapes() const = 0;
  // The next batch; waits when it is not ready. The previous batch's memory is taken back.
  virtual Batch next() = 0;
  // Continue so that the next batch begins at stream position `sample` (snapshots).
  virtual void seek(int64_t sample) = 0;
  // Broken records skipped so far (SourceOptions::skip_corrupt).
  virtual int64_t skipped() const { return 0; }
};

struct ReaderOptions {
  uint64_t seed = 1;
  Phase phase = Phase::train;
  int tops = 2;
  std::vector<std::string> top_names;  // hdf5_data: the datasets
  std::string layer_name;              // stream of random numbers
  int threads = 1;                     // decoding threads in the background
  int batches_ahead = 3;               // prefetched batches
};

// Opens what `source` names. Throws UserError: missing file or database, wrong backend, unreadable record,
// crop larger than image, mean of another shape.
std::unique_ptr<Reader> open_reader(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
