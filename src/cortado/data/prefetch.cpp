#include "cortado/data/prefetch.h"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>

#include "cortado/base/finite.h"
#include "cortado/base/text.h"
#include "cortado/data/image.h"

namespace cortado {

PrefetchReader::PrefetchReader(std::unique_ptr<SampleSource> source, int batch_size, bool skip_corrupt,
                               const ReaderOptions& options)
    : source_(std::move(source)),
      shapes_(source_->shapes()),
      batch_size_(batch_size),
      batches_ahead_(std::max(1, options.batches_ahead)),
      range_{0, batch_size},
      thread_count_(std::max(1, options.threads)),
      skip_corrupt_(skip_corrupt),
      top_names_(options.top_names),
      notice_(options.notice) {
  for (const Shape& shape : shapes_) {
    rows_.emplace_back();
    if (!has_row_per_sample(shape, batch_size)) continue;
    Box sample = Box::whole(shape);
    sample[0] = {0, 1};
    rows_.back() = Rows{sample, sample};
  }
  note_floats();
}

void PrefetchReader::note_floats() {
  sample_floats_.clear();
  for (const auto& rows : rows_) sample_floats_.push_back(rows ? rows->kept.shape().size() : 0);
}

PrefetchReader::~PrefetchReader() { stop(); }

void PrefetchReader::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  room_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void PrefetchReader::restrict_to(const BatchPart& part) {
  const Range samples = part.samples;
  ensure(threads_.empty(), "a reader is restricted before its first batch");
  ensure(0 <= samples.begin && samples.begin <= samples.end && samples.end <= batch_size_,
         "a reader is restricted to samples of its batch");
  ensure(part.tops.size() == shapes_.size(), "a reader is restricted to a box of each top");
  range_ = samples;
  std::vector<Box> boxes;
  bool whole = true;
  for (size_t t = 0; t < rows_.size(); ++t) {
    boxes.push_back(part.tops[t]);
    if (!rows_[t]) continue;
    boxes.back()[0] = {0, 1};
    whole &= boxes.back() == rows_[t]->whole;
    rows_[t]->kept = boxes.back();
  }
  note_floats();
  cuts_ = !whole && !source_->restrict_to(boxes);
}

// Where the system does not give all threads, none may begin to work: it has no memory for that, either.
void PrefetchReader::start(std::unique_lock<std::mutex>& lock) {
  chunk_size_ = std::clamp<int64_t>(range_.size() / (4 * thread_count_), 1, 32);
  // Of samples so large, as volumes are, one batch ahead hides its reading, and more take memory.
  constexpr int64_t large_sample = 1 << 22;  // values
  if (std::ranges::any_of(sample_floats_, [](int64_t floats) { return floats >= large_sample; }))
    batches_ahead_ = 1;
  ring_.resize(batches_ahead_ + 1);
  try {
    for (int i = 0; i < thread_count_; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stopping_ = true;
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    stopping_ = false;
    throw;
  }
}

Batch PrefetchReader::next() {
  std::unique_lock lock(mutex_);
  if (threads_.empty()) start(lock);
  Slot& slot = slot_of(taken_);
  done_.wait(lock, [&] { return slot.ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  slot.ready = false;
  Batch batch = batch_in(slot);
  ++taken_;
  room_.notify_all();
  return batch;
}

std::optional<Batch> PrefetchReader::peek() {
  std::lock_guard lock(mutex_);
  if (threads_.empty()) return std::nullopt;
  const Slot& slot = slot_of(taken_);
  if (!slot.ready || slot.error) return std::nullopt;
  return batch_in(slot);
}

// Of the one that is taken next.
Batch PrefetchReader::batch_in(const Slot& slot) const {
  Batch batch;
  batch.first_sample = first_sample(taken_);
  for (const AlignedBuffer& tensor : slot.tensors) batch.tensors.push_back(tensor.data());
  return batch;
}

void PrefetchReader::seek(int64_t sample) {
  std::unique_lock lock(mutex_);
  paused_ = true;
  done_.wait(lock, [&] { return running_ == 0; });
  first_ = sample;
  issued_ = issued_rows_ = taken_ = 0;
  for (Slot& slot : ring_) {
    slot.ready = false;
    slot.error = nullptr;
  }
  paused_ = false;
  room_.notify_all();
}

std::vector<int64_t> PrefetchReader::skipped() const {
  std::lock_guard lock(mutex_);
  return {broken_.begin(), broken_.end()};
}

void PrefetchReader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    room_.wait(lock, [&] { return stopping_ || has_room(); });
    if (stopping_) return;
    const Chunk chunk = take_chunk();
    Slot& slot = slot_of(chunk.batch);
    lock.unlock();
    load_chunk(chunk);
    lock.lock();
    slot.missing -= chunk.end - chunk.begin;
    if (slot.missing == 0) {
      if (!slot.error) {
        lock.unlock();
        std::vector<float*> tops;
        for (const AlignedBuffer& tensor : slot.tensors) tops.push_back(tensor.data());
        source_->finish_batch(first_sample(chunk.batch), slot.samples, sample_floats_, tops);
        lock.lock();
      }
      slot.ready = true;
    }
    --running_;
    done_.notify_all();
  }
}

PrefetchReader::Chunk PrefetchReader::take_chunk() {
  Slot& slot = slot_of(issued_);
  if (issued_rows_ == 0) begin_batch(slot);
  const auto rows = static_cast<int64_t>(slot.samples.size());
  const Chunk chunk{issued_, issued_rows_, std::min(issued_rows_ + chunk_size_, rows)};
  issued_rows_ = chunk.end;
  if (chunk.end == rows) {
    ++issued_;
    issued_rows_ = 0;
  }
  ++running_;
  return chunk;
}

void PrefetchReader::begin_batch(Slot& slot) {
  slot.samples.clear();
  for (int64_t i = range_.begin; i < range_.end; ++i) slot.samples.push_back(i);
  for (int64_t partner : source_->partners(first_sample(issued_), range_)) slot.samples.push_back(partner);
  slot.error = nullptr;
  try {
    allocate(slot);
  } catch (const std::bad_alloc&) {  // a batch without samples, which ends in this error
    slot.samples.clear();
    slot.error_sample = 0;
    slot.error = std::make_exception_ptr(UserError(
        fmt::format("there is no memory for a batch of {}; give a smaller batch_size", shapes_[0].text())));
  }
  slot.missing = std::ssize(slot.samples);
}

void PrefetchReader::allocate(Slot& slot) const {
  const auto rows = std::ssize(slot.samples);
  for (size_t t = 0; t < shapes_.size(); ++t) {
    const int64_t floats = rows_[t] ? rows * sample_floats_[t] : shapes_[t].size();
    if (slot.tensors.size() == t) slot.tensors.emplace_back(floats);
    if (std::ssize(slot.tensors[t].span()) < floats) slot.tensors[t] = AlignedBuffer(floats);
  }
}

// Runs without the lock. Of several failures in a batch the first sample's is kept, so that the error does
// not depend on the threads.
void PrefetchReader::load_chunk(const Chunk& chunk) {
  Slot& slot = slot_of(chunk.batch);
  std::vector<float*> tops(shapes_.size());
  for (int64_t row = chunk.begin; row < chunk.end; ++row) {
    for (size_t t = 0; t < tops.size(); ++t) tops[t] = slot.tensors[t].data() + row * sample_floats_[t];
    const int64_t sample = slot.samples[row];
    try {
      load_sample(first_sample(chunk.batch) + sample, sample, tops);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (slot.error && slot.error_sample < sample) return;
      slot.error = std::current_exception();
      slot.error_sample = sample;
      return;
    }
  }
}

// What was just written lies in the cache, so one look at it costs little.
void PrefetchReader::check_sample(int64_t sample, std::span<float* const> tops,
                                  std::span<const int64_t> floats) const {
  for (size_t t = 0; t < tops.size(); ++t) {
    const int64_t at = first_non_finite({tops[t], static_cast<size_t>(floats[t])});
    if (at < 0) continue;
    const std::string what =
        fmt::format("sample {} of the batch has the value {} in '{}'", sample, tops[t][at],
                    t < top_names_.size() ? top_names_[t] : fmt::format("top {}", t));
    if (skip_corrupt_) throw BrokenRecord(what);
    throw UserError(what + "; correct the data, or how they are scaled");
  }
}

void PrefetchReader::load_record(int64_t record, int64_t position, int64_t sample,
                                 std::span<float* const> tops) {
  if (cuts_) return load_and_cut(record, position, sample, tops);
  source_->load(record, position, tops);
  check_sample(sample, tops, sample_floats_);
}

// Whole samples are checked, so that all ranks agree on which are broken.
void PrefetchReader::load_and_cut(int64_t record, int64_t position, int64_t sample,
                                  std::span<float* const> tops) {
  std::vector<AlignedBuffer> whole;
  std::vector<float*> loaded;
  std::vector<int64_t> floats;
  for (size_t t = 0; t < tops.size(); ++t) {
    floats.push_back(rows_[t] ? rows_[t]->whole.shape().size() : 0);
    whole.emplace_back(floats[t]);
    loaded.push_back(rows_[t] ? whole[t].data() : tops[t]);
  }
  source_->load(record, position, loaded);
  check_sample(sample, loaded, floats);
  for (size_t t = 0; t < tops.size(); ++t)
    if (rows_[t]) cut_out(rows_[t]->whole, loaded[t], rows_[t]->kept, tops[t]);
}

// A broken record's place is taken by the next good one of the stream, whoever loads it.
void PrefetchReader::load_sample(int64_t position, int64_t sample, std::span<float* const> tops) {
  const int64_t records = source_->records();
  for (int64_t ahead = 0; ahead < records; ++ahead) {
    const int64_t record = source_->record_at(position + ahead);
    try {
      return load_record(record, position, sample, tops);
    } catch (const BrokenRecord& error) {
      const std::string message = fmt::format("{}: {}", source_->record_name(record), error.what());
      if (!skip_corrupt_)
        throw UserError(message + "; repair or remove it, or set skip_corrupt to leave such records out");
      note_broken(record, message);
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", source_->record_name(record), error.what()));
    }
  }
  throw UserError(fmt::format("{}: none of the {} records can be read",
                              source_->record_name(source_->record_at(position)), records));
}

void PrefetchReader::note_broken(int64_t record, const std::string& message) {
  std::lock_guard lock(mutex_);
  if (broken_.insert(record).second && notice_)
    notice_(fmt::format("warning: skipped {}", message_line(message)));
}

}  // namespace cortado
