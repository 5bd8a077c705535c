#include "cortado/report/prediction_report.h"

#include <fmt/format.h>
#include <numeric>
#include <span>
#include <utility>

#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

// "12.3 / 11.9"; nothing where there is nothing.
std::string pair_text(Seconds predicted, Seconds measured) {
  if (predicted.count == 0 && measured.count == 0) return "";
  return fmt::format("{:.3f} / {:.3f}", 1e3 * predicted.count, 1e3 * measured.count);
}

std::string error_text(Seconds predicted, Seconds measured) {
  return measured.count > 0 ? fmt::format("{:+.1f} %", 100 * (predicted.count / measured.count - 1)) : "";
}

Seconds sum_of(std::span<const Seconds> parts) {
  return std::accumulate(parts.begin(), parts.end(), Seconds{});
}

}  // namespace

std::string prediction_text(const std::vector<PredictedLayer>& layers, Seconds simulated, Seconds measured) {
  std::vector<Table::Column> columns{{"layer", Table::Align::left}};
  for (StepPart part : step_parts) {
    if (part != StepPart::other) columns.push_back({std::string(name_of(part))});
  }
  columns.push_back({"error"});
  Table table(columns);
  PredictedLayer sum{.name = "sum of layers"};
  auto add = [&](const PredictedLayer& layer) {
    std::vector<std::string> cells{layer.name};
    for (size_t part = 0; part + 1 < std::size(step_parts); ++part)
      cells.push_back(pair_text(layer.predicted[part], layer.measured[part]));
    cells.push_back(error_text(sum_of(layer.predicted), sum_of(layer.measured)));
    table.add(std::move(cells));
  };
  for (const PredictedLayer& layer : layers) {
    for (size_t part = 0; part < std::size(step_parts); ++part) {
      sum.predicted[part] += layer.predicted[part];
      sum.measured[part] += layer.measured[part];
    }
    if (sum_of(layer.measured).count > 0) add(layer);
  }
  table.add_rule();
  add(sum);
  const Seconds one_by_one = sum_of(sum.predicted);
  return "\npredicted / measured, in ms, and the prediction's error; steps of rank 0\n" + table.text() +
         fmt::format(
             "\niteration: {:.3f} ms measured; predicted {:.3f} ms with nothing hidden ({}), {:.3f} ms "
             "simulated, with communication hidden under computing ({})\n",
             1e3 * measured.count, 1e3 * one_by_one.count, error_text(one_by_one, measured),
             1e3 * simulated.count, error_text(simulated, measured));
}

Json prediction_json(const std::vector<PredictedLayer>& layers, Seconds simulated) {
  Json list = Json::array();
  Seconds sum;
  for (const PredictedLayer& layer : layers) {
    Json entry{{"name", layer.name}};
    for (size_t part = 0; part < std::size(step_parts); ++part) {
      const std::string name(name_of(step_parts[part]));
      entry[name + "_predicted_seconds"] = layer.predicted[part].count;
      entry[name + "_measured_seconds"] = layer.measured[part].count;
    }
    sum += sum_of(layer.predicted);
    list.push_back(std::move(entry));
  }
  return {
      {"step_seconds", sum.count}, {"overlapped_step_seconds", simulated.count}, {"layers", std::move(list)}};
}

}  // namespace cortado
