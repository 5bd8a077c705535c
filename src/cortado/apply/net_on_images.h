#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/apply/applied_net.h"
#include "cortado/apply/image_batches.h"

namespace cortado {

struct ImageOptions {
  PreprocessOptions preprocess;
  int batch = 0;  // rows of the net's input; 0: as the model says. Never more than the images fill.
  int reader_threads = 1;
  bool skip_corrupt = false;  // ImageBatches::Options
  std::string remedy;
};

// A part of a trained net that reads the images of a set, each once and in order. An image has crops() rows
// of a batch.
class NetOnImages {
 public:
  // Throws UserError: no images, a net without exactly one Input layer for images, and what Preprocessor and
  // AppliedNet throw.
  NetOnImages(const TrainedNet& net, const std::vector<std::string>& blobs, std::unique_ptr<ImageSet> images,
              const ImageOptions& options);

  AppliedNet& net() { return *net_; }
  int crops() const { return crops_; }
  int64_t images() const { return batches_->images(); }
  int64_t batch_asked() const { return batch_asked_; }  // rows that options or model say
  // Images of the batch that the next run() of the net computes; 0: there is no further one.
  int64_t next_images() const;
  // Computes them. Returns the first one's number.
  int64_t run();
  // Note of an image that was computed.
  const ReadImage& note(int64_t image) const { return batches_->note(image); }

 private:
  int crops_ = 1;
  int64_t batch_asked_ = 1, images_a_batch_ = 1, done_ = 0;
  std::unique_ptr<ImageBatches> batches_;
  std::unique_ptr<AppliedNet> net_;
};

}  // namespace cortado
