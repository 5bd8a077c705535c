#pragma once

#include <functional>
#include <span>

#include "cortado/data/memory_reader.h"
#include "cortado/data/reader.h"

namespace cortado {

// Reader whose batches a function fills, on the thread that asks for them.
class CallbackReader : public Reader {
 public:
  // Samples of a batch to be filled in: values of each top's rows, in spoken order.
  struct Request {
    int64_t number = 0;  // of the batch in the stream of all
    Range samples;       // of the batch
    std::vector<Shape> shapes;
    std::vector<std::span<float>> tops;
  };
  using Fill = std::function<void(const Request&)>;

  CallbackReader(std::vector<Shape> shapes, Fill fill);
  std::vector<Shape> shapes() const override { return tops_.shapes(); }
  void restrict_to(Range samples) override;
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }

 private:
  Shape rows_of(size_t top) const;  // of the samples that are read

  TopBuffers tops_;
  Range samples_;
  Fill fill_;
  std::vector<std::vector<float>> spoken_;  // per top; empty where memory order is spoken order
  int64_t position_ = 0;
};

}  // namespace cortado
