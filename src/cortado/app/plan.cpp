#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "cortado/app/arguments.h"
#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/help.h"
#include "cortado/app/named_files.h"
#include "cortado/app/number_option.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_costs.h"
#include "cortado/plan/planner.h"
#include "cortado/plan/remedy.h"
#include "cortado/report/plan_report.h"

namespace cortado {
namespace {

struct PlanArguments {
  ModelOptions model;
  MachineOptions here;  // of --machine local
  std::string machine, out, json, report, dimensions{plan::all_dimensions};
  int devices = 0;
  double memory_gib = 0;  // 0: as the machine says
  bool frontier = false;
  std::string command_line;
};

constexpr int frontier_points = 12;

Bytes memory_limit(const PlanArguments& a, const DeviceGraph& machine) {
  if (a.memory_gib > 0) return {static_cast<int64_t>(a.memory_gib * (1 << 30))};
  return machine.least_memory();
}

// With what would fit, found by planning again.
[[noreturn]] void refuse(const PlanArguments& a, const DeviceGraph& whole, int devices,
                         const Network& network, Bytes limit, const plan::NothingFits& error) {
  const auto fits = [&](int count, int64_t batch) {
    const DeviceGraph machine = whole.first(count);
    ModelOptions model = a.model;
    model.batch = static_cast<int>(batch);
    const LoadedNetwork loaded = load_without_data(model, Phase::train);
    AnalyticCosts costs(machine);
    return plan::fits(loaded.network, plan::pricing_for(machine, a.dimensions), costs,
                      machine.node_of_devices(), limit);
  };
  const plan::Remedy remedy = plan::find_remedy(fits, devices, whole.devices(), batch_of(network));
  throw UserError(fmt::format("net '{}' on {} {} of machine '{}': {}; {}", network.name(), devices,
                              devices == 1 ? "device" : "devices", whole.machine().name, error.what(),
                              plan::text_of(remedy, whole.devices())));
}

void tell(const PlanArguments& a, const Network& network, const DeviceGraph& machine,
          const plan::Plan& plan) {
  const PlanReport report{network, machine, plan, a.out.empty() ? "" : shell_word(a.out),
                          page_origin(a.command_line)};
  if (!a.report.empty()) write_page("--report", a.report, plan_page(report));
  if (!a.out.empty()) write_file_atomically(a.out, strategy_text(report.plan.strategy));
  if (!a.json.empty()) write_file_atomically(a.json, plan_json(report));
  fmt::print("{}", plan_text(report));
}

CommandFiles files_of(const PlanArguments& a) {
  CommandFiles files;
  add_inputs(files, a.model);
  files.reads(a.machine);
  files.writes("--out", a.out);
  files.writes("--json", a.json);
  files.writes_page("--report", a.report);
  return files;
}

// For the ranks of this job, by costs measured on them.
void plan_here(const PlanArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.here);
  check(files_of(a), *job);
  const LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  JobCosts costs(*job, "", print_notice);
  const plan::PlanOptions options{.memory = memory_limit(a, costs.machine()),
                                  .frontier_points = a.frontier ? frontier_points : 0};
  const plan::Plan plan = plan::make_plan(loaded.network, plan::pricing_for(costs.machine(), a.dimensions),
                                          costs.costs(), costs.machine().node_of_devices(), options);
  costs.save();
  if (job->rank() == 0) tell(a, loaded.network, costs.machine(), plan);
}

void run_plan(const PlanArguments& a) {
  if (a.machine == "local") return plan_here(a);
  files_of(a).check();
  const DeviceGraph whole = load_machine(a.machine);
  const DeviceGraph machine = a.devices > 0 ? whole.first(a.devices) : whole;
  const LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  AnalyticCosts costs(machine);
  const plan::PlanOptions options{.memory = memory_limit(a, machine),
                                  .frontier_points = a.frontier ? frontier_points : 0};
  plan::Plan plan;
  try {
    plan = plan::make_plan(loaded.network, plan::pricing_for(machine, a.dimensions), costs,
                           machine.node_of_devices(), options);
  } catch (const plan::NothingFits& error) {
    refuse(a, whole, machine.devices(), loaded.network, options.memory, error);
  }
  tell(a, loaded.network, machine, plan);
}

}  // namespace

Command add_plan_command(CLI::App& app, const std::string& command_line) {
  auto a = std::make_shared<PlanArguments>();
  a->command_line = command_line;
  CLI::App* command =
      app.add_subcommand("plan", "Find the cheapest way to cut each layer of a model over a machine");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command
      ->add_option("--machine", a->machine,
                   "Machine: a file (.json), the name of a ready one, or local: this one, measured")
      ->required();
  add_number(*command, "--devices", a->devices, 1, most_ranks,
             "Use the first so many devices; of local: plan for so many ranks; default: all, of local: 1");
  add_number(
      *command, "--threads", a->here.threads, 1, most_threads,
      "With --machine local: compute threads of each rank; default: its share of the cores it may use");
  add_launch_options(*command, a->here);
  command
      ->add_option("--dimensions", a->dimensions,
                   "Cut layers along these alone, of ncdhwr (default: all); the built-in strategies stay")
      ->check([](const std::string& letters) {
        const size_t other = letters.find_first_not_of(plan::all_dimensions);
        return other == std::string::npos ? std::string()
                                          : fmt::format("there is no dimension '{}'; give letters of {}",
                                                        letters[other], plan::all_dimensions);
      });
  add_number(*command, "--memory", a->memory_gib, 1e-6, 1e6,
             "GiB that a device may hold; default: as the machine says, of the smallest device");
  command->add_flag("--frontier", a->frontier, "Tell what less memory would cost, and what more would save");
  command->add_option("--out", a->out, "Write the strategy, for --strategy of the other commands");
  command->add_option("--json", a->json, "Write the plan as JSON");
  command->add_option("--report", a->report, "Write a page, index.html, into this folder");
  command->footer(
      help_footer({"cortado plan --model models/vgg-16/train_val.prototxt --machine layer-wise-p100 "
                   "--devices 4 --batch 128 --out plan.json"}));
  refuse_empty_names(*command, {"--model", "--machine", "--out", "--json", "--report"});
  return {command, [a] { run_plan(*a); }};
}

}  // namespace cortado
