#include "cortado/train/comparison_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct ColumnOf {
  const char *title, *key;
  std::optional<double> LayerDifference::*value;
};
constexpr ColumnOf columns[] = {{"activations", "activations", &LayerDifference::activation},
                                {"gradients", "gradients", &LayerDifference::gradient},
                                {"weight gradients", "weight_gradients", &LayerDifference::weight_gradient},
                                {"weights", "weights", &LayerDifference::weight}};

double worst_of(const CutComparison& comparison, const ColumnOf& column) {
  double worst = 0;
  for (const LayerDifference& layer : comparison.layers)
    worst = std::max(worst, (layer.*column.value).value_or(0));
  return worst;
}

std::string layers_text(const CutComparison& comparison) {
  Table table({{"layer", Table::Align::left},
               {columns[0].title},
               {columns[1].title},
               {columns[2].title},
               {columns[3].title}});
  for (const LayerDifference& layer : comparison.layers) {
    std::vector<std::string> cells{layer.layer};
    for (const ColumnOf& column : columns) {
      const auto& value = layer.*column.value;
      const bool worst = value && *value > 0 && *value == worst_of(comparison, column);
      cells.push_back(value ? fmt::format("{}{:.1e}", worst ? "* " : "", *value) : "");
    }
    table.add(std::move(cells));
  }
  return table.text() +
         "\nLargest differences of cut and uncut tensors, relative to the largest magnitude of the tensor; * "
         "the worst.\nActivations and gradients: of iteration 1; weights: after the last.\n\n";
}

std::string losses_text(const CutComparison& comparison) {
  Table table({{"iteration"}, {"loss uncut"}, {"loss cut"}, {"difference"}});
  for (size_t i = 0; i < comparison.uncut_losses.size(); ++i) {
    table.add({fmt::format("{}", i + 1), fmt::format("{:.8g}", comparison.uncut_losses[i]),
               fmt::format("{:.8g}", comparison.cut_losses[i]),
               fmt::format("{:.1e}", comparison.loss_difference(i))});
  }
  return table.text() + "\n";
}

}  // namespace

std::string comparison_text(const CutComparison& comparison) {
  return layers_text(comparison) + losses_text(comparison);
}

std::string comparison_json(const CutComparison& comparison, const std::string& strategy, int ranks) {
  // A number that is not finite is null.
  auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  Json losses = Json::array(), layers = Json::array();
  for (size_t i = 0; i < comparison.uncut_losses.size(); ++i) {
    losses.push_back({{"uncut", number(comparison.uncut_losses[i])},
                      {"cut", number(comparison.cut_losses[i])},
                      {"difference", number(comparison.loss_difference(i))}});
  }
  for (const LayerDifference& layer : comparison.layers) {
    Json entry{{"name", layer.layer}};
    for (const ColumnOf& column : columns)
      if (const auto& value = layer.*column.value) entry[column.key] = number(*value);
    layers.push_back(std::move(entry));
  }
  Json report{{"strategy", strategy}, {"ranks", ranks}, {"same", describe_difference(comparison).empty()}};
  for (const ColumnOf& column : columns)
    report[std::string("worst_") + column.key] = number(worst_of(comparison, column));
  report["losses"] = losses;
  report["layers"] = layers;
  return report.dump(2) + "\n";
}

}  // namespace cortado
