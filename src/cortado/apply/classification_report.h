#pragma once

#include <string>
#include <vector>

#include "cortado/apply/classifier.h"

namespace cortado {

// The lines that Caffe's classification example prints for an image.
std::string prediction_lines(const ClassifiedImage& image, const std::vector<std::string>& labels);

// How many of the images that came with a label were told right.
class AccuracyCount {
 public:
  void add(const ClassifiedImage& image);
  // A line, or nothing where an image came without.
  std::string text(int top) const;

 private:
  int64_t images_ = 0, labelled_ = 0, first_ = 0, among_ = 0;
};

// All predictions: for each image its name, its label where it came with one, and the best classes with
// scores; or why it could not be read.
std::string classification_json(const std::string& blob, const std::vector<ClassifiedImage>& images,
                                const std::vector<std::string>& labels);
// A line for each prediction, below one that names the columns.
std::string classification_csv(const std::vector<ClassifiedImage>& images,
                               const std::vector<std::string>& labels);

}  // namespace cortado
