#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/help.h"
#include "cortado/app/load_without_data.h"
#include "cortado/app/named_files.h"
#include "cortado/app/number_option.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/report/table.h"
#include "cortado/train/compare_cut.h"
#include "cortado/train/resident_data.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyArguments {
  ModelOptions model;
  MachineOptions machine;
  std::string json;
  int iterations = 3;
  double rate = 1e-3;
};

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

void print_layers(const CutComparison& comparison) {
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
  fmt::print("{}\n", table.text());
  fmt::print(
      "Largest differences of cut and uncut tensors, relative to the largest magnitude of the tensor; * the "
      "worst.\nActivations and gradients: of iteration 1; weights: after the last.\n\n");
}

void print_losses(const CutComparison& comparison) {
  Table table({{"iteration"}, {"loss uncut"}, {"loss cut"}, {"difference"}});
  for (size_t i = 0; i < comparison.uncut_losses.size(); ++i) {
    table.add({fmt::format("{}", i + 1), fmt::format("{:.8g}", comparison.uncut_losses[i]),
               fmt::format("{:.8g}", comparison.cut_losses[i]),
               fmt::format("{:.1e}", comparison.loss_difference(i))});
  }
  fmt::print("{}\n", table.text());
}

// A number that is not finite is null.
std::string json_text(const CutComparison& comparison, const std::string& strategy, int ranks, bool same) {
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
  Json report{{"strategy", strategy}, {"ranks", ranks}, {"same", same}};
  for (const ColumnOf& column : columns)
    report[std::string("worst_") + column.key] = number(worst_of(comparison, column));
  report["losses"] = losses;
  report["layers"] = layers;
  return report.dump(2) + "\n";
}

ComparedData resident_data(const Network& network) {
  auto data = std::make_shared<ResidentData>(network);
  return {data->sources(),
          [data](const std::map<std::string, Range>& samples) { data->restrict_to(samples); }};
}

void run_verify(const VerifyArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.machine);
  CommandFiles files;
  add_inputs(files, a.model);
  add_inputs(files, a.machine);
  files.writes("--json", a.json);
  check(files, *job);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  const ComparedTraining training{.network = loaded.network,
                                  .cut = compile_options(a.machine, *job, loaded.network),
                                  .job = *job,
                                  .data = [&] { return resident_data(loaded.network); },
                                  .iterations = a.iterations,
                                  .rate = a.rate};
  const CutComparison comparison = compare_cut_training(training);
  if (job->rank() > 0) return;

  for (double loss : comparison.uncut_losses) {
    if (std::isfinite(loss)) continue;
    throw UserError(fmt::format("--rate {}: the loss of the uncut training becomes {}; give a smaller rate",
                                a.rate, loss));
  }
  const std::string strategy = strategy_of(a.machine, *job), difference = describe_difference(comparison);
  print_layers(comparison);
  print_losses(comparison);
  if (!a.json.empty())
    write_file_atomically(a.json, json_text(comparison, strategy, job->size(), difference.empty()));
  if (!difference.empty()) throw InternalError(difference);
  fmt::print("{} under strategy {} on {} {}: the same as uncut\n", loaded.network.name(), strategy,
             job->size(), job->size() == 1 ? "rank" : "ranks");
}

}  // namespace

Command add_verify_command(CLI::App& app) {
  auto a = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Train a model cut by a strategy and uncut, on the same random data, and compare");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  add_number(*command, "--iterations", a->iterations, 1, most_iterations, "Iterations to train");
  add_number(*command, "--rate", a->rate, 1e-12, 1e6, "Learning rate; momentum is 0.9");
  command->add_option("--json", a->json, "Write the differences as JSON");
  add_machine_options(*command, a->machine);
  command->footer(
      help_footer({"cortado verify --model models/lenet/train_val.prototxt --input-shape 1x28x28 --ranks 2 "
                   "--strategy model"}));
  refuse_empty_names(*command, {"--model", "--json"});
  return {command, [a] { run_verify(*a); }};
}

}  // namespace cortado
