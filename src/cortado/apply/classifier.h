#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/apply/net_on_images.h"

namespace cortado {

struct ClassifierOptions {
  ImageOptions images;
  std::string blob;    // of the scores; empty: the net's only output
  std::string labels;  // file of the classes' names, a line each; empty: none
  int top = 5;
};

struct ClassScore {
  int64_t of_class = 0;
  float score = 0;
};

struct ClassifiedImage {
  ReadImage image;
  std::vector<ClassScore>
      predictions;  // the best ones, best first, of equal ones the lower class; none: broken
};

// Applies a trained net to images: the scores of each are those that the net puts out or, where images are
// oversampled, their mean over the crops.
class Classifier {
 public:
  // Throws UserError: an output that is not a row of scores an image, another number of labels than scores,
  // and what NetOnImages throws.
  Classifier(const TrainedNet& net, std::unique_ptr<ImageSet> images, const ClassifierOptions& options);

  // Calls take(image) for each image, in order. Throws UserError on a broken image, unless these are skipped,
  // and on scores that are not finite.
  void run(const std::function<void(const ClassifiedImage&)>& take);

  int64_t images() const { return images_.images(); }
  int64_t classes() const { return classes_; }
  const std::string& blob() const { return blob_; }
  // The names of the classes, in their order; empty without a file of labels.
  const std::vector<std::string>& labels() const { return labels_; }
  const Executor& executor() { return images_.net().executor(); }

 private:
  void check_scores(const std::string& model);
  std::vector<ClassScore> best_of(const float* rows, const ReadImage& image);

  std::string blob_;
  int top_;
  std::vector<std::string> labels_;
  NetOnImages images_;
  int64_t classes_ = 0;
};

}  // namespace cortado
