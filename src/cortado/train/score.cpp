#include "cortado/train/score.h"

#include <chrono>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/seconds_since.h"
#include "cortado/train/trainer.h"

namespace cortado {

Score score(Executor& executor, int batches,
            const std::function<void(int batch, const std::vector<OutputValue>&)>& each) {
  const auto start = std::chrono::steady_clock::now();
  Score score;
  for (int batch = 0; batch < batches; ++batch) {
    const double loss = executor.run(static_cast<uint64_t>(batch));
    require_finite(executor, loss, fmt::format("batch {}", batch));
    score.loss += loss / batches;
    const std::vector<OutputValue> values = output_values(executor);
    if (batch == 0) score.outputs.assign(values.size(), {});
    for (size_t i = 0; i < values.size(); ++i) {
      score.outputs[i].name = values[i].name;
      score.outputs[i].loss_weight = values[i].loss_weight;
      score.outputs[i].value += values[i].value / batches;
    }
    each(batch, values);
  }
  score.seconds = seconds_since(start).count;
  return score;
}

std::string score_json(const Score& score, int batches, double images_per_second) {
  using Json = nlohmann::ordered_json;
  Json values = Json::array();
  for (const OutputValue& o : score.outputs) values.push_back({{"name", o.name}, {"value", o.value}});
  const Json report{{"iterations", batches},
                    {"loss", score.loss},
                    {"outputs", values},
                    {"seconds", score.seconds},
                    {"images_per_second", images_per_second}};
  return report.dump(2) + "\n";
}

}  // namespace cortado
