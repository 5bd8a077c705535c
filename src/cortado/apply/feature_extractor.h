#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/apply/feature_store.h"
#include "cortado/apply/net_on_images.h"

namespace cortado {

// Takes blobs of a trained net for samples, one after another: those of the net's own source layers, or the
// images of a set. Only the layers that the blobs need are computed, and only these blobs are kept, for a
// batch.
class FeatureExtractor {
 public:
  // The net's own samples: `batches` batches, or 0 for each once. Throws UserError: a blob without a row a
  // sample or named twice, data without end, and what AppliedNet throws.
  FeatureExtractor(const TrainedNet& net, const std::vector<std::string>& blobs, int64_t batches,
                   int reader_threads);
  // The first images of the set, `batches` of as many as the batch that options or model say, or 0 for all.
  // Throws UserError also where the set has fewer.
  FeatureExtractor(const TrainedNet& net, const std::vector<std::string>& blobs, int64_t batches,
                   std::unique_ptr<ImageSet> images, const ImageOptions& options);

  int64_t samples() const { return samples_; }
  const std::vector<FeatureArray>& arrays() const { return arrays_; }
  // Hands every sample to the store, which it does not finish. `progress` is told the samples done so far.
  void run(FeatureStore& store, const std::function<void(int64_t done, int64_t total)>& progress);
  // Per array, samples with a value that is not finite.
  const std::vector<int64_t>& not_finite() const { return not_finite_; }
  int64_t skipped_records() const { return own_ ? own_->skipped_records() : 0; }
  const Executor& executor() { return net().executor(); }

 private:
  AppliedNet& net() { return images_ ? images_->net() : *own_; }
  void set_samples(int64_t samples, const std::vector<std::string>& blobs);

  std::string model_;
  std::unique_ptr<NetOnImages> images_;
  std::unique_ptr<AppliedNet> own_;  // where there are no images
  int64_t samples_ = 0;
  std::vector<FeatureArray> arrays_;
  std::vector<int64_t> not_finite_;
};

}  // namespace cortado
