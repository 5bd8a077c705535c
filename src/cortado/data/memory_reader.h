#pragma once

#include "cortado/base/random.h"
#include "cortado/data/buffer.h"
#include "cortado/data/reader.h"

namespace cortado {

// The memory of a batch's tops, or of a part of them; allocated, as zeros, when first asked for.
class TopBuffers {
 public:
  explicit TopBuffers(std::vector<Shape> shapes);
  const std::vector<Shape>& shapes() const { return shapes_; }
  int64_t batch_size() const { return batch_size_of(shapes_[0]); }
  void restrict_to(const BatchPart& part);
  const BatchPart& part() const { return part_; }
  std::span<float> values(size_t top);  // of its box, channels last
  Batch batch(int64_t first_sample);

 private:
  std::vector<Shape> shapes_;
  BatchPart part_;
  std::vector<AlignedBuffer> buffers_;
};

// Reader of an Input layer: tensors that the caller fills before each next(); zeros until then.
class InputReader : public Reader {
 public:
  explicit InputReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return tops_.shapes(); }
  void restrict_to(const BatchPart& part) override { tops_.restrict_to(part); }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }
  // Tensor of top `top`, channels last; the restricted part of it.
  std::span<float> values(int top) { return tops_.values(static_cast<size_t>(top)); }

 private:
  TopBuffers tops_;
  int64_t position_ = 0;
};

// Reader of a MemoryData layer: samples that the caller sets, taken batch by batch, over and over; one batch
// of zeros until then. No transforms.
class MemoryReader : public Reader {
 public:
  explicit MemoryReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return {data_shape_, {data_shape_[0]}}; }
  void restrict_to(const BatchPart& part) override { part_ = part; }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }
  // `data` channels last, one label a sample. Throws UserError unless both hold the same whole number of
  // batches.
  void set(std::span<const float> data, std::span<const float> labels);

 private:
  Shape data_shape_;
  BatchPart part_;
  std::vector<float> data_, labels_;
  std::vector<float> cut_;  // the part of the data where that is not whole samples
  int64_t position_ = 0;
};

// Reader of a DummyData layer: tops filled once when the filler is constant, anew each batch otherwise.
class DummyReader : public Reader {
 public:
  explicit DummyReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return tops_.shapes(); }
  void restrict_to(const BatchPart& part) override { tops_.restrict_to(part); }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }

 private:
  TopBuffers tops_;
  std::vector<Filler> fillers_;  // per top
  bool filled_ = false;          // the constant tops
  RandomStream stream_;
  int64_t position_ = 0;
};

}  // namespace cortado
