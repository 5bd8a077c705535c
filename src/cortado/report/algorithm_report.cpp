#include "cortado/report/algorithm_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

constexpr Seconds TaskTime::*passes[] = {&TaskTime::forward, &TaskTime::backward_weights,
                                         &TaskTime::backward};

// Returns the rate over the passes that took time.
FlopRate rate_of(const AlgorithmTable& table, const TaskTime& time) {
  double flops = 0;
  for (const auto pass : passes) flops += (time.*pass).count > 0 ? table.flops : 0;
  return {flops / time.total().count};
}

double percent(FlopRate rate, FlopRate peak) { return 100 * rate.per_second / peak.per_second; }

std::string time_cell(Seconds seconds) {
  return seconds.count > 0 ? fmt::format("{:.2f}", 1e3 * seconds.count) : "";
}

std::string remark(const AlgorithmTable& table, int index) {
  const Algorithm& algorithm = table.algorithms[static_cast<size_t>(index)];
  if (!algorithm.refusal.empty()) return "refused: " + algorithm.refusal;
  if (!algorithm.pruned.empty()) return algorithm.pruned;
  if (index == table.pick) return index == table.listed ? "pick, first of the list" : "pick";
  return index == table.listed ? "first of the list" : "";
}

void add_rows(const NetConvolution& convolution, FlopRate peak, Table& to) {
  const AlgorithmTable& table = convolution.table;
  for (size_t i = 0; i < table.algorithms.size(); ++i) {
    const Algorithm& algorithm = table.algorithms[i];
    std::vector<std::string> cells{i == 0 ? fmt::format("{}", fmt::join(convolution.layers, ", ")) : "",
                                   algorithm.name};
    if (algorithm.time) {
      const FlopRate rate = rate_of(table, *algorithm.time);
      for (const auto pass : passes) cells.push_back(time_cell(*algorithm.time.*pass));
      cells.push_back(time_cell(algorithm.time->total()));
      cells.push_back(fmt::format("{:.1f}", 1e-9 * rate.per_second));
      cells.push_back(fmt::format("{:.0f} %", percent(rate, peak)));
    } else {
      cells.insert(cells.end(), 6, "");
    }
    const bool works = algorithm.refusal.empty();
    cells.push_back(works ? time_cell(algorithm.predicted) : "");
    cells.push_back(works ? fmt::format("{:.1f}", static_cast<double>(algorithm.scratch.count) / (1 << 20))
                          : "");
    cells.push_back(remark(table, static_cast<int>(i)));
    to.add(std::move(cells));
  }
  to.add_rule();
}

// Sums over all layers: a convolution counts as often as the net has it.
struct Totals {
  Seconds listed, pick, pass_picks;
};

Totals totals_of(const std::vector<NetConvolution>& convolutions) {
  Totals totals;
  for (const auto& [layers, task, table] : convolutions) {
    if (table.pick < 0) continue;
    const auto times = static_cast<double>(layers.size());
    const auto total = [&](int index) {
      return times * table.algorithms[static_cast<size_t>(index)].time->total().count;
    };
    totals.pick += {total(table.pick)};
    totals.listed += {total(table.listed)};
    for (const auto pass : passes) {
      Seconds best = *table.algorithms[static_cast<size_t>(table.pick)].time.*pass;
      for (const Algorithm& algorithm : table.algorithms)
        if (algorithm.time) best = std::min(best, *algorithm.time.*pass);
      totals.pass_picks += {times * best.count};
    }
  }
  return totals;
}

Json algorithm_json(const AlgorithmTable& table, const Algorithm& algorithm, FlopRate peak) {
  Json entry{{"name", algorithm.name}};
  if (!algorithm.refusal.empty()) {
    entry["refusal"] = algorithm.refusal;
    return entry;
  }
  entry["predicted_seconds"] = algorithm.predicted.count;
  entry["scratch_bytes"] = algorithm.scratch.count;
  if (!algorithm.pruned.empty()) entry["pruned"] = algorithm.pruned;
  if (!algorithm.time) return entry;
  entry["forward_seconds"] = algorithm.time->forward.count;
  entry["backward_weights_seconds"] = algorithm.time->backward_weights.count;
  entry["backward_seconds"] = algorithm.time->backward.count;
  const FlopRate rate = rate_of(table, *algorithm.time);
  entry["flops_per_second"] = rate.per_second;
  entry["percent_of_peak"] = percent(rate, peak);
  return entry;
}

}  // namespace

std::string algorithms_text(const std::vector<NetConvolution>& convolutions, FlopRate peak) {
  Table table({{"layers", Table::Align::left},
               {"algorithm", Table::Align::left},
               {"forward ms"},
               {"weights ms"},
               {"data ms"},
               {"all ms"},
               {"GFLOP/s"},
               {"of peak"},
               {"predicted ms"},
               {"scratch MiB"},
               {"", Table::Align::left}});
  for (const NetConvolution& convolution : convolutions) add_rows(convolution, peak, table);
  const Totals totals = totals_of(convolutions);
  return table.text() + fmt::format(
                            "convolutions together: {:.2f} ms as picked, {:.2f} ms by the first of the list "
                            "({:.3f} times as "
                            "long), {:.2f} ms were each pass picked on its own\n",
                            1e3 * totals.pick.count, 1e3 * totals.listed.count,
                            totals.listed.count / totals.pick.count, 1e3 * totals.pass_picks.count);
}

std::string algorithms_json(const std::vector<NetConvolution>& convolutions, FlopRate peak, int threads) {
  Json list = Json::array();
  for (const auto& [layers, task, table] : convolutions) {
    Json entry{{"layers", layers},
               {"input", task.inputs[0].text()},
               {"output", task.outputs[0].text()},
               {"flops", table.flops}};
    const auto name = [&, &table = table](int index) {
      return index < 0 ? Json() : Json(table.algorithms[static_cast<size_t>(index)].name);
    };
    entry["pick"] = name(table.pick);
    entry["first_of_the_list"] = name(table.listed);
    for (const Algorithm& algorithm : table.algorithms)
      entry["algorithms"].push_back(algorithm_json(table, algorithm, peak));
    list.push_back(std::move(entry));
  }
  const Json json{{"peak_flops_per_second", peak.per_second}, {"threads", threads}, {"convolutions", list}};
  return json.dump(2) + "\n";
}

}  // namespace cortado
