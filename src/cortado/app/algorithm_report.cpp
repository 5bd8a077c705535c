#include "cortado/app/algorithm_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "cortado/layers/problem.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

constexpr Seconds TaskTime::*passes[] = {&TaskTime::forward, &TaskTime::backward_weights,
                                         &TaskTime::backward};

// FLOP per second of the passes that took time.
double rate_of(const AlgorithmTable& table, const TaskTime& time) {
  double flops = 0;
  for (const auto pass : passes) flops += (time.*pass).count > 0 ? table.flops : 0;
  return flops / time.total().count;
}

std::string milliseconds(Seconds seconds) {
  return seconds.count > 0 ? fmt::format("{:.2f}", 1e3 * seconds.count) : "";
}

std::string remark(const AlgorithmTable& table, int index) {
  const Algorithm& algorithm = table.algorithms[static_cast<size_t>(index)];
  if (!algorithm.refusal.empty()) return "refused: " + algorithm.refusal;
  if (!algorithm.pruned.empty()) return algorithm.pruned;
  if (index == table.pick) return index == table.listed ? "pick, first of the list" : "pick";
  return index == table.listed ? "first of the list" : "";
}

void add_rows(const ReportedConvolution& convolution, double peak, Table& to) {
  const AlgorithmTable& table = convolution.table;
  for (size_t i = 0; i < table.algorithms.size(); ++i) {
    const Algorithm& algorithm = table.algorithms[i];
    std::vector<std::string> cells{i == 0 ? fmt::format("{}", fmt::join(convolution.layers, ", ")) : "",
                                   algorithm.name};
    if (algorithm.time) {
      const double rate = rate_of(table, *algorithm.time);
      for (const auto pass : passes) cells.push_back(milliseconds(*algorithm.time.*pass));
      cells.push_back(milliseconds(algorithm.time->total()));
      cells.push_back(fmt::format("{:.1f}", 1e-9 * rate));
      cells.push_back(fmt::format("{:.0f} %", 100 * rate / peak));
    } else {
      cells.insert(cells.end(), 6, "");
    }
    const bool works = algorithm.refusal.empty();
    cells.push_back(works ? milliseconds(algorithm.predicted) : "");
    cells.push_back(works ? fmt::format("{:.1f}", static_cast<double>(algorithm.scratch.count) / (1 << 20))
                          : "");
    cells.push_back(remark(table, static_cast<int>(i)));
    to.add(std::move(cells));
  }
  to.add_rule();
}

// Seconds of all layers together, each convolution as often as it is there.
struct Totals {
  double listed = 0, pick = 0, pass_picks = 0;
};

Totals totals_of(const std::vector<ReportedConvolution>& convolutions) {
  Totals totals;
  for (const auto& [layers, task, table] : convolutions) {
    if (table.pick < 0) continue;
    const auto times = static_cast<double>(layers.size());
    const auto total = [&](int index) {
      return table.algorithms[static_cast<size_t>(index)].time->total().count;
    };
    totals.pick += times * total(table.pick);
    totals.listed += times * total(table.listed);
    for (const auto pass : passes) {
      double best = 1e300;
      for (const Algorithm& algorithm : table.algorithms)
        if (algorithm.time) best = std::min(best, (*algorithm.time.*pass).count);
      totals.pass_picks += times * best;
    }
  }
  return totals;
}

Json algorithm_json(const AlgorithmTable& table, const Algorithm& algorithm, double peak) {
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
  entry["flops_per_second"] = rate_of(table, *algorithm.time);
  entry["percent_of_peak"] = 100 * rate_of(table, *algorithm.time) / peak;
  return entry;
}

}  // namespace

std::vector<ReportedConvolution> convolutions_of(const Network& network, const Program& program,
                                                 Algorithms& algorithms) {
  std::vector<Task> tasks;
  std::vector<std::vector<std::string>> layers;
  std::vector<std::string> problems;
  for (const Work& work : program.works) {
    if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
    const std::string problem = problem_of(work.task);
    const auto known = static_cast<size_t>(std::ranges::find(problems, problem) - problems.begin());
    if (known == problems.size()) {
      problems.push_back(problem);
      tasks.push_back(work.task);
      layers.emplace_back();
    }
    layers[known].push_back(name_of(work, network));
  }
  std::vector<AlgorithmTable> tables = algorithms.tables(tasks);
  std::vector<ReportedConvolution> convolutions;
  for (size_t i = 0; i < tasks.size(); ++i)
    convolutions.push_back({std::move(layers[i]), std::move(tasks[i]), std::move(tables[i])});
  return convolutions;
}

std::string algorithms_text(const std::vector<ReportedConvolution>& convolutions, double peak) {
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
  for (const ReportedConvolution& convolution : convolutions) add_rows(convolution, peak, table);
  const Totals totals = totals_of(convolutions);
  return table.text() + fmt::format(
                            "convolutions together: {:.2f} ms as picked, {:.2f} ms by the first of the list "
                            "({:.3f} times as long), "
                            "{:.2f} ms were each pass picked on its own\n",
                            1e3 * totals.pick, 1e3 * totals.listed, totals.listed / totals.pick,
                            1e3 * totals.pass_picks);
}

Json algorithms_json(const std::vector<ReportedConvolution>& convolutions, double peak) {
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
  return list;
}

}  // namespace cortado
