#include "cortado/apply/classification_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/text.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

std::string name_of(int64_t of_class, const std::vector<std::string>& labels) {
  return labels.empty() ? std::to_string(of_class) : labels[static_cast<size_t>(of_class)];
}

}  // namespace

std::string prediction_lines(const ClassifiedImage& image, const std::vector<std::string>& labels) {
  std::string lines = fmt::format("---------- Prediction for {} ----------\n", image.image.name);
  for (const ClassScore& p : image.predictions)
    lines += fmt::format("{:.4f} - \"{}\"\n", p.score, name_of(p.of_class, labels));
  return lines;
}

void AccuracyCount::add(const ClassifiedImage& image) {
  if (!image.image.fault.empty()) return;
  ++images_;
  if (!image.image.label) return;
  ++labelled_;
  const auto& best = image.predictions;
  const auto place = std::ranges::find(best, *image.image.label, &ClassScore::of_class);
  first_ += place == best.begin() && place != best.end();
  among_ += place != best.end();
}

std::string AccuracyCount::text(int top) const {
  if (images_ == 0 || labelled_ < images_) return "";
  auto share = [&](int64_t count) { return static_cast<double>(count) / static_cast<double>(images_); };
  std::string line = fmt::format("Accuracy over the labels of {} images: {:.6g}", images_, share(first_));
  if (top > 1) line += fmt::format(" (among the best {}: {:.6g})", top, share(among_));
  return line + "\n";
}

std::string classification_json(const std::string& blob, const std::vector<ClassifiedImage>& images,
                                const std::vector<std::string>& labels) {
  Json list = Json::array();
  for (const ClassifiedImage& image : images) {
    Json entry{{"image", image.image.name}};
    if (image.image.label) entry["label"] = *image.image.label;
    if (!image.image.fault.empty()) entry["fault"] = image.image.fault;
    Json predictions = Json::array();
    for (const ClassScore& p : image.predictions) {
      Json prediction{{"class", p.of_class}};
      if (!labels.empty()) prediction["name"] = name_of(p.of_class, labels);
      prediction["score"] = p.score;
      predictions.push_back(std::move(prediction));
    }
    entry["predictions"] = std::move(predictions);
    list.push_back(std::move(entry));
  }
  // Names of files may be no UTF-8.
  return Json{{"blob", blob}, {"images", std::move(list)}}.dump(2, ' ', false,
                                                                Json::error_handler_t::replace) +
         "\n";
}

std::string classification_csv(const std::vector<ClassifiedImage>& images,
                               const std::vector<std::string>& labels) {
  std::string text = "image,label,rank,class,name,score\n";
  for (const ClassifiedImage& image : images) {
    const std::string label = image.image.label ? std::to_string(*image.image.label) : "";
    for (size_t rank = 0; rank < image.predictions.size(); ++rank) {
      const ClassScore& p = image.predictions[rank];
      text += fmt::format("{},{},{},{},{},{}\n", csv_field(image.image.name), label, rank + 1, p.of_class,
                          labels.empty() ? "" : csv_field(name_of(p.of_class, labels)), p.score);
    }
  }
  return text;
}

}  // namespace cortado
