#include "cortado/train/training_summary.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/text.h"

namespace cortado {

void TrainingSummary::iteration(const IterationReport& r) {
  if (!r.updated) return;
  since_.done = r.iteration + 1;
  ++since_.iterations;
  since_.images += r.images;
  since_.losses += r.loss;
  since_.rate = r.learning_rate;
  since_.duration += r.duration;
}

void TrainingSummary::test(const TestReport& r) {
  if (rows_.empty() || rows_.back().iteration != r.iteration) {
    rows_.push_back({r.iteration, since_, {}});
    since_ = {};
  }
  const std::string net = r.net == 0 ? "test" : fmt::format("test{}", r.net);
  for (const OutputValue& output : r.outputs)
    rows_.back().outputs.push_back({net + " " + output.name, output.value});
}

std::string TrainingSummary::csv() const {
  std::vector<Row> rows = rows_;
  if (since_.iterations > 0) rows.push_back({since_.done, since_, {}});
  std::vector<std::string> names;
  for (const Row& row : rows)
    for (const auto& [name, value] : row.outputs)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::string text = "iteration,loss,lr,images_per_second";
  for (const std::string& name : names) text += "," + csv_field(name);
  text += "\n";
  for (const auto& [iteration, since, outputs] : rows) {
    text += fmt::format("{}", iteration);
    if (since.iterations == 0)
      text += ",,,";
    else
      text += fmt::format(",{},{},{}", since.losses / static_cast<double>(since.iterations), since.rate,
                          static_cast<double>(since.images) / std::max(1e-9, since.duration.count));
    for (const std::string& name : names) {
      const auto output = std::ranges::find(outputs, name, [](const auto& o) { return o.first; });
      text += output == outputs.end() ? "," : fmt::format(",{}", output->second);
    }
    text += "\n";
  }
  return text;
}

}  // namespace cortado
