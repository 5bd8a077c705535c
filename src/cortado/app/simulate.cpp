#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/auto/choose_on_machine.h"
#include "cortado/auto/recompute.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/seconds_since.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/parallel/strategy.h"
#include "cortado/report/run_page.h"
#include "cortado/report/simulation_report.h"
#include "cortado/tune/tune_on_machine.h"
#include "cortado/tune/tuning_text.h"

namespace cortado {
namespace {

struct SimulateArguments {
  ModelOptions model;
  std::string machine, strategy = "auto", json, trace, report, out, command_line;
  bool tune = false, keep_cuts = false;
  double tune_seconds = 60;
  ScheduleChanges schedule;
  int devices = 0;
};

SimulatedJob simulate_on(const DeviceGraph& machine, const Network& network, const Strategy& strategy,
                         const std::string& name, SimulatedRanks ranks) {
  return simulate_job(network, resolve(strategy, network, machine.devices(), name), strategy.schedule,
                      AbsentMachine(machine).simulated(), ranks);
}

// Refines the strategy as long as there is time, and prints what changed.
void tune(const SimulateArguments& a, const DeviceGraph& machine, const Network& network,
          Strategy& strategy) {
  const auto begin = std::chrono::steady_clock::now();
  AbsentMachine absent(machine);
  const TunedStrategy tuned = tune_on(
      absent.simulated(), network, strategy,
      {.cuts = !a.keep_cuts, .go_on = [&] { return seconds_since(begin).count < a.tune_seconds; }}, 1);
  fmt::print("{}", tuning_text(network, strategy, tuned, seconds_since(begin).count, "--tune-seconds"));
  strategy = tuned.strategy;
}

void run_simulate(const SimulateArguments& a) {
  CommandFiles files;
  add_inputs(files, a.model);
  files.reads({a.machine, a.strategy});
  files.writes("--out", a.out);
  files.writes("--json", a.json);
  files.writes("--trace", a.trace);
  files.writes_page("--report", a.report);
  files.check();
  const DeviceGraph whole = load_machine(a.machine);
  const DeviceGraph machine = a.devices > 0 ? whole.first(a.devices) : whole;
  print_warnings(rate_warnings(machine, a.model.precision));
  const LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  const Network& network = loaded.network;
  auto [strategy, misfit] = choose_on_machine(a.strategy, network, machine);
  if (!misfit.empty()) fmt::print("strategy auto: {}; planned without that limit\n", misfit);
  apply(a.schedule, network, strategy, as_option);
  if (a.tune) tune(a, machine, network, strategy);
  fmt::print("{}", recompute_on_machine(a.schedule, network, machine, strategy, as_option));
  if (!a.out.empty()) write_file_atomically(a.out, strategy_text(strategy));
  const auto begin = std::chrono::steady_clock::now();
  const bool shows_all = !a.trace.empty() || !a.report.empty();
  const SimulatedJob simulated = simulate_on(machine, network, strategy, a.strategy,
                                             shows_all ? SimulatedRanks::all : SimulatedRanks::that_differ);
  const Seconds taken = seconds_since(begin);
  const SimulatedJob alone = simulate_on(machine.first(1), network, built_in_strategy("single", network, 1),
                                         "single", SimulatedRanks::all);
  const TimeReport report = report_of(simulated, network, machine);
  const Seconds one = alone.simulation.iteration;
  fmt::print("{}{:.3f} ms on one device: {:.2f} times slower; simulated in {:.2f} s, with {}\n",
             times_text(report), 1e3 * one.count, one.count / report.step.count, taken.count,
             AbsentMachine(machine).guesses_kernels() ? "a guess at its kernels"
                                                      : "its kernels, which are this build's");
  if (!a.report.empty()) {
    RunReport page = run_report_of(simulated, report, network, machine, a.strategy);
    page.origin = page_origin(a.command_line);
    write_page("--report", a.report, run_page(page));
  }
  if (!a.json.empty()) {
    auto json = times_json(report);
    json["single_step_seconds"] = one.count;
    json["simulation_seconds"] = taken.count;
    write_file_atomically(a.json, json.dump(2) + "\n");
  }
  if (!a.trace.empty()) write_file_atomically(a.trace, trace_json(slices_of_job(simulated, network)));
}

}  // namespace

Command add_simulate_command(CLI::App& app, const std::string& command_line) {
  auto a = std::make_shared<SimulateArguments>();
  a->command_line = command_line;
  CLI::App* command = app.add_subcommand(
      "simulate", "Simulate a training iteration of a model on a machine, present or not, under a strategy");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command
      ->add_option("--machine", a->machine,
                   "A machine file (docs/reference/machines.md), or the name of one in machines/")
      ->required();
  add_number(*command, "--devices", a->devices, 1, most_ranks,
             "Run on the first so many devices of the machine; default: all");
  command->add_option(
      "--strategy", a->strategy,
      fmt::format("auto (default: planned for the machine), {}, random:SEED or a file (.json)",
                  fmt::join(built_in_strategies(), ", ")));
  add_schedule_options(*command, a->schedule);
  auto* tune = command->add_flag(
      "--tune", a->tune,
      "Refine the strategy: simulate other schedules, ways to sum gradients and cuts, take what is "
      "faster");
  command->add_flag("--keep-cuts", a->keep_cuts, "With --tune: leave how layers are cut as it is")
      ->needs(tune);
  add_number(*command, "--tune-seconds", a->tune_seconds, 1e-3, 1e6,
             "With --tune: begin no simulation after so long")
      ->needs(tune);
  command->add_option("--out", a->out, "Write the strategy, with its schedule");
  command->add_option("--json", a->json, "Write the times as JSON");
  command->add_option("--trace", a->trace, "Write all ranks' steps, for Perfetto or chrome://tracing");
  command->add_option("--report", a->report, "Write a page, index.html, into this folder");
  command->footer(
      help_footer({"cortado simulate --model models/vgg-16/train_val.prototxt --machine layer-wise-p100 "
                   "--devices 4 --batch 128"}));
  refuse_empty_names(*command, {"--model", "--machine", "--out", "--json", "--trace", "--report"});
  return {command, [a] { run_simulate(*a); }};
}

}  // namespace cortado
