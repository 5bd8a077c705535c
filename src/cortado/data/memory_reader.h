#pragma once

#include "cortado/base/random.h"
#include "cortado/data/buffer.h"
#include "cortado/data/reader.h"

namespace cortado {

// Reader of an Input layer: tensors that the caller fills before each next(); zeros until then.
class InputReader : public Reader {
 public:
  explicit InputReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return shapes_; }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }
  // Tensor of top `top`, channels last.
  std::span<float> values(int top) { return buffers_.at(top).span(); }

 private:
  std::vector<Shape> shapes_;
  std::vector<AlignedBuffer> buffers_;
  int64_t position_ = 0;
};

// Reader of a MemoryData layer: samples that the caller sets, taken batch by batch, over and over; one batch
// of zeros until then. No transforms.
class MemoryReader : public Reader {
 public:
  explicit MemoryReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return {data_shape_, {data_shape_[0]}}; }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }
  // `data` channels last, one label a sample. Throws UserError unless both hold the same whole number of
  // batches.
  void set(std::span<const float> data, std::span<const float> labels);

 private:
  Shape data_shape_;
  std::vector<float> data_, labels_;
  int64_t position_ = 0;
};

// Reader of a DummyData layer: tops filled once when the filler is constant, anew each batch otherwise.
class DummyReader : public Reader {
 public:
  explicit DummyReader(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override { return shapes_; }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }

 private:
  std::vector<Shape> shapes_;
  std::vector<Filler> fillers_;  // per top
  std::vector<AlignedBuffer> buffers_;
  RandomStream stream_;
  int64_t position_ = 0;
};

}  // namespace cortado
