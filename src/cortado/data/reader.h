#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/base/batch_part.h"
#include "cortado/base/notices.h"
#include "cortado/layers/source.h"

namespace cortado {

// One batch as the compute lane takes it: dense float tensors, channels last, one per top of the source layer
// (images first, then labels). The memory belongs to the reader until the next call of next().
struct Batch {
  std::vector<const float*> tensors;  // after restrict_to(): of that part alone
  int64_t first_sample = 0;           // position of sample 0 in the stream of all samples ever read
};

// Gives the batches of a source layer. Sample order and each sample's randomness depend on (seed, stream
// position) alone, never on threads or ranks. Every error names file and key.
class Reader {
 public:
  virtual ~Reader() = default;
  // Shapes of all tops, batch_size first: of the whole batch, restricted or not.
  virtual std::vector<Shape> shapes() const = 0;
  // Restricts the reader to the part of every batch that a rank needs: only its samples are loaded, and only
  // its boxes are held. They are bitwise those of the whole batch, and Batch::first_sample stays that of its
  // sample 0. Tops without a row a sample stay whole. Call it before the first next().
  virtual void restrict_to(const BatchPart& part) = 0;
  // The next batch; waits when it is not ready. The previous batch's memory is taken back.
  virtual Batch next() = 0;
  // The batch that next() would give now, which stays the next one; nothing where it is not ready or broken.
  virtual std::optional<Batch> peek() { return std::nullopt; }
  // Continue so that the next batch begins at stream position `sample` (snapshots).
  virtual void seek(int64_t sample) = 0;
  // Samples after which the stream begins again; 0 where it has no such end.
  virtual int64_t records() const { return 0; }
  // Broken records skipped so far (SourceOptions::skip_corrupt), among those that were read here: each once,
  // by its number, ascending.
  virtual std::vector<int64_t> skipped() const { return {}; }
};

struct ReaderOptions {
  uint64_t seed = 1;
  Phase phase = Phase::train;
  int tops = 2;
  std::vector<std::string> top_names;  // hdf5_data: the datasets
  std::string layer_name;              // stream of random numbers
  int threads = 1;                     // decoding threads in the background
  int batches_ahead = 3;               // prefetched batches
  Notices notice{};                    // of each record that is skipped; any thread
};

}  // namespace cortado
