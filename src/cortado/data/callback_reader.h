#pragma once

#include <functional>
#include <span>

#include "cortado/data/memory_reader.h"
#include "cortado/data/reader.h"

namespace cortado {

// Reader whose batches a function fills, on the thread that asks for them. The function fills whole samples,
// also where the reader keeps only boxes of them.
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
  void restrict_to(const BatchPart& part) override { tops_.restrict_to(part); }
  Batch next() override;
  void seek(int64_t sample) override { position_ = sample; }

 private:
  // What the function fills: whole rows of the samples that are read.
  Box rows_of(size_t top) const;
  void take(size_t top);  // the box that is kept of what was filled

  TopBuffers tops_;
  Fill fill_;
  std::vector<std::vector<float>> spoken_;  // per top; empty where it is filled where it is kept
  int64_t position_ = 0;
};

}  // namespace cortado
