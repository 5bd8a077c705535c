#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/apply/part_of_net.h"
#include "cortado/train/data_network.h"

namespace cortado {

// What to apply: a model file, the state that its layers are chosen by, and the files of its weights, each
// over those before.
struct TrainedNet {
  NetFile file;
  caffe::NetState state;
  std::vector<std::string> weights;
  Notices notice{};  // as ReaderOptions
};

// The forward pass of a part of a trained net, batch by batch, on one rank.
class AppliedNet {
 public:
  // `given`: in place of a source layer's own reader, what brings its batches; must outlive this object.
  // Throws UserError also where the weights lack a layer, which would compute with arbitrary values.
  AppliedNet(const TrainedNet& net, const PartOfNet& part, int reader_threads,
             const std::map<std::string, BatchSource>& given);

  // Of output `output` of the part, samples first.
  const Shape& shape(size_t output) const { return data_.network().tensors()[tensors_[output]].shape; }
  // Samples of a batch: the first extent of the first source layer.
  int64_t batch_size() const { return data_.batch_size(); }
  // Samples after which the net's own data begin again. Throws UserError where they have no end, or several.
  int64_t samples_of_data() const;

  // Computes the next batch.
  void run();
  // Of that batch, in spoken (row-major) order.
  std::vector<float> values(size_t output) const { return executor_.canonical_tensor(tensors_[output]); }
  // Executor::first_non_finite
  std::string first_non_finite() { return executor_.first_non_finite(); }

  const Executor& executor() const { return executor_; }
  int64_t skipped_records() const { return static_cast<int64_t>(data_.skipped_records().size()); }

 private:
  void load_weights(const std::vector<std::string>& files);

  std::string model_;
  DataNetwork data_;
  ParameterStore parameters_;
  Executor executor_;
  std::vector<TensorIndex> tensors_;  // per output
  uint64_t batches_ = 0;
};

}  // namespace cortado
