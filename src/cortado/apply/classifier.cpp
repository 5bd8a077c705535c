#include "cortado/apply/classifier.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

std::string only_output(const TrainedNet& net) {
  const std::vector<std::string> outputs = net_outputs(net.file, net.state);
  if (outputs.size() == 1) return outputs[0];
  if (outputs.empty()) throw UserError(fmt::format("{}: the net puts nothing out", net.file.path));
  throw UserError(fmt::format("{}: the net has {} outputs, '{}'; choose one with --blob", net.file.path,
                              outputs.size(), fmt::join(outputs, "', '")));
}

// The lines of a file, without blank ones at its end.
std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    lines.push_back(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

}  // namespace

Classifier::Classifier(const TrainedNet& net, std::unique_ptr<ImageSet> images,
                       const ClassifierOptions& options)
    : blob_(options.blob.empty() ? only_output(net) : options.blob),
      top_(options.top),
      labels_(options.labels.empty() ? std::vector<std::string>() : lines_of(options.labels)),
      images_(net, {blob_}, std::move(images), options.images) {
  check_scores(net.file.path);
  if (options.labels.empty() || std::ssize(labels_) == classes_) return;
  throw UserError(
      fmt::format("{} names {} classes, but the net puts out {} scores ('{}'); give the labels that it was "
                  "trained with",
                  options.labels, labels_.size(), classes_, blob_));
}

void Classifier::check_scores(const std::string& model) {
  const Shape& shape = images_.net().shape(0);
  classes_ = shape.rank() > 1 ? shape[1] : 0;
  const bool row = shape.rank() > 1 && shape[0] == images_.net().batch_size() && shape.count(1) == classes_;
  if (!row)
    throw UserError(
        fmt::format("{}: blob '{}' of {} is not a row of scores for each of {} images; choose another with "
                    "--blob, or take this one by `cortado extract`",
                    model, blob_, shape.text(), images_.net().batch_size()));
}

void Classifier::run(const std::function<void(const ClassifiedImage&)>& take) {
  while (const int64_t count = images_.next_images()) {
    const int64_t first = images_.run();
    const std::vector<float> scores = images_.net().values(0);
    for (int64_t i = 0; i < count; ++i) {
      ClassifiedImage image{images_.note(first + i), {}};
      if (image.image.fault.empty())
        image.predictions = best_of(&scores[i * images_.crops() * classes_], image.image);
      take(image);
    }
  }
}

// `rows`: the scores of the image's crops.
std::vector<ClassScore> Classifier::best_of(const float* rows, const ReadImage& image) {
  std::vector<ClassScore> predictions;
  for (int64_t c = 0; c < classes_; ++c) {
    double sum = 0;
    for (int crop = 0; crop < images_.crops(); ++crop) sum += rows[crop * classes_ + c];
    if (!std::isfinite(sum))
      throw UserError(
          fmt::format("{}: its score of class {} is {}: {} is the first that is not finite; the weights or "
                      "the scale of the pixels do not fit the net",
                      image.name, c, sum, images_.net().first_non_finite()));
    predictions.push_back({c, static_cast<float>(sum / images_.crops())});
  }
  const auto best = predictions.begin() + std::min<int64_t>(top_, classes_);
  std::ranges::partial_sort(predictions, best, [](const ClassScore& a, const ClassScore& b) {
    return a.score != b.score ? a.score > b.score : a.of_class < b.of_class;
  });
  predictions.erase(best, predictions.end());
  return predictions;
}

}  // namespace cortado
