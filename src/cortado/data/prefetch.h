#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "cortado/data/buffer.h"
#include "cortado/data/reader.h"

namespace cortado {

// What the prefetcher reads from: a finite list of records, repeated without end in an order that may change
// each epoch. All functions but the constructor's may be called from several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Shapes of all tops. A top whose first extent is not the batch size belongs to the batch as a whole.
  virtual std::vector<Shape> shapes() const = 0;
  virtual int64_t records() const = 0;
  // The record at a stream position.
  virtual int64_t record_at(int64_t position) = 0;
  // Name for messages: "list.txt line 7: cat.jpg".
  virtual std::string record_name(int64_t record) = 0;
  // True where load() from now on writes only these boxes of each sample, one per top (of axes after the
  // first: along that they are [0, 1)); false where it loads whole samples alone, of which the caller takes
  // the boxes. Called at most once, before the first load().
  virtual bool restrict_to(const std::vector<Box>& /*sample*/) { return false; }
  // Writes the record as sample `position` (which keys its randomness): tops[t] is where that sample of top t
  // begins. Throws BrokenRecord, or UserError when the data set as a whole does not fit; both with the reason
  // alone.
  virtual void load(int64_t record, int64_t position, std::span<float* const> tops) = 0;
  // Samples of the batch that finish_batch() needs beside [begin, end); ascending.
  virtual std::vector<int64_t> partners(int64_t /*first_sample*/, Range /*samples*/) const { return {}; }
  // Called once all samples of a batch are loaded. `samples`: which of the batch the tops hold, in their
  // order: the range asked for, then its partners. `floats`: what a top holds of each sample. Tops of the
  // whole batch are written here.
  virtual void finish_batch(int64_t /*first_sample*/, std::span<const int64_t> /*samples*/,
                            std::span<const int64_t> /*floats*/, std::span<float* const> /*tops*/) {}
};

// Reads, decodes and transforms samples on background threads into a ring of batches, so that the compute
// lane never waits on a cached data set. A sample with a value that is infinite or not a number counts as
// broken. The threads start with the first next(), so that asking for shapes costs nothing.
class PrefetchReader : public Reader {
 public:
  PrefetchReader(std::unique_ptr<SampleSource> source, int batch_size, bool skip_corrupt,
                 const ReaderOptions& options);
  ~PrefetchReader() override;

  std::vector<Shape> shapes() const override { return shapes_; }
  void restrict_to(const BatchPart& part) override;
  Batch next() override;
  std::optional<Batch> peek() override;
  void seek(int64_t sample) override;
  int64_t records() const override { return source_->records(); }
  std::vector<int64_t> skipped() const override;

 private:
  // One batch of the ring.
  struct Slot {
    std::vector<int64_t> samples;        // of the batch, in the order of the tensors' rows
    std::vector<AlignedBuffer> tensors;  // at least as many rows
    int64_t missing = 0;                 // samples still to load
    bool ready = false;
    int64_t error_sample = 0;  // the first sample that failed
    std::exception_ptr error;
  };
  // A top of which each sample has a row; of a sample: all of it, and the box that is kept.
  struct Rows {
    Box whole, kept;
  };
  // Consecutive rows of one batch (counted since the last seek), handed to one thread; no rows where the
  // batch has none.
  struct Chunk {
    int64_t batch = 0, begin = 0, end = 0;
  };

  Slot& slot_of(int64_t batch) { return ring_[batch % static_cast<int64_t>(ring_.size())]; }
  bool has_room() const { return !paused_ && issued_ < taken_ + batches_ahead_; }
  int64_t first_sample(int64_t batch) const { return first_ + batch * batch_size_; }
  Batch batch_in(const Slot& slot) const;
  void start(std::unique_lock<std::mutex>& lock);  // with the lock held
  void work();
  void begin_batch(Slot& slot);
  void allocate(Slot& slot) const;
  void note_floats();
  Chunk take_chunk();
  void load_chunk(const Chunk& chunk);
  void load_sample(int64_t position, int64_t sample, std::span<float* const> tops);
  void load_record(int64_t record, int64_t position, int64_t sample, std::span<float* const> tops);
  void load_and_cut(int64_t record, int64_t position, int64_t sample, std::span<float* const> tops);
  void check_sample(int64_t sample, std::span<float* const> tops, std::span<const int64_t> floats) const;
  void note_broken(int64_t record, const std::string& message);
  void stop();

  std::unique_ptr<SampleSource> source_;
  std::vector<Shape> shapes_;
  int64_t batch_size_, batches_ahead_;
  Range range_;             // the samples of each batch that are asked for
  int64_t chunk_size_ = 1;  // rows
  int thread_count_;
  bool skip_corrupt_;
  std::vector<std::string> top_names_;
  const Notices notice_;
  std::vector<std::optional<Rows>> rows_;  // per top; none: a top of the whole batch
  std::vector<int64_t> sample_floats_;     // per top, that are kept; 0: of the whole batch
  bool cuts_ = false;                      // the source loads whole samples, of which boxes are kept

  mutable std::mutex mutex_;  // guards all below; `tensors` belong to whoever loads or holds the batch
  std::condition_variable room_, done_;
  std::vector<Slot> ring_;   // batches_ahead + the one the caller holds
  int64_t first_ = 0;        // stream position at the last seek
  int64_t issued_ = 0;       // batches handed to threads since then
  int64_t issued_rows_ = 0;  // and rows of the one after them
  int64_t taken_ = 0;        // batches given to the caller since then
  int running_ = 0;          // chunks being loaded
  bool paused_ = false, stopping_ = false;
  std::set<int64_t> broken_;  // records
  std::vector<std::thread> threads_;
};

}  // namespace cortado
