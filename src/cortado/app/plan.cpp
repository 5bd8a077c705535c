#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/auto/recompute.h"
#include "cortado/auto/sweep_on_machine.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/cli/choice_option.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_costs.h"
#include "cortado/report/net_report.h"
#include "cortado/report/plan_report.h"
#include "cortado/report/sweep_report.h"
#include "cortado/train/gather.h"

namespace cortado {
namespace {

struct PlanArguments {
  ModelOptions model;
  JobOptions here;  // of --machine local
  std::string machine, out, json, csv, report, dimensions{plan::all_dimensions};
  std::vector<std::string> sweep;
  int devices = 0, most_simulated = simulated_devices;
  double memory_gib = 0;  // 0: as the machine says
  int history = 1;
  bool frontier = false, recompute = false, simulated = false;
  std::string command_line;
};

plan::PlanOptions plan_options(const PlanArguments& a, const DeviceGraph& machine) {
  const Bytes asked{static_cast<int64_t>(a.memory_gib * (1 << 30))};
  return {.memory = a.memory_gib > 0 ? asked : machine.least_memory(),
          .frontier_points = a.frontier ? plan::usual_frontier_points : 0};
}

void report_plan(const PlanArguments& a, const Network& network, const DeviceGraph& machine,
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
  files.writes("--csv", a.csv);
  files.writes_page("--report", a.report);
  return files;
}

// Plans for the ranks of this job, by costs measured on them.
void plan_here(PlanArguments& a) {
  if (a.simulated)
    throw UserError("--objective simulated: of machines that are not here; train has --strategy auto");
  if (a.recompute) throw UserError("--recompute: of machines that are not here; train has --memory-limit");
  std::unique_ptr<Communicator> job = join_job(a.here);
  check_command_files(files_of(a), *job);
  const LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  JobCosts costs(*job, "", print_notice, *a.here.cut.device);
  const plan::Plan plan =
      plan::make_plan(loaded.network, plan::pricing_for(costs.machine(), a.dimensions, a.history),
                      costs.costs(), costs.machine().node_of_devices(), plan_options(a, costs.machine()));
  costs.save();
  if (job->rank() == 0) report_plan(a, loaded.network, costs.machine(), plan);
}

void run_plan(PlanArguments& a) {
  if (a.machine == "local" && a.sweep.empty()) return plan_here(a);
  files_of(a).check();
  const DeviceGraph whole = load_machine(a.machine);
  const DeviceGraph machine = a.devices > 0 ? whole.first(a.devices) : whole;
  print_warnings(rate_warnings(machine, a.model.precision));
  const LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  const auto with_batch = [model = a.model](int64_t batch) mutable {
    model.batch = static_cast<int>(batch);
    return load_without_data(model, Phase::train).network;
  };
  const plan::PlanRequest request{.network = loaded.network,
                                  .batch = batch_of(loaded.network),
                                  .with_batch = with_batch,
                                  .dimensions = a.dimensions,
                                  .history = a.history,
                                  .options = plan_options(a, machine)};
  if (!a.sweep.empty())
    return fmt::print("{}", write_sweep({sweep_on_machine(request, machine, a.sweep, a.most_simulated),
                                         page_origin(a.command_line)},
                                        {.json = a.json, .csv = a.csv, .page = a.report}));
  const plan::Plan plan = plan_for(request, whole, machine.devices(), a.recompute, a.simulated);
  report_plan(a, loaded.network, machine, plan);
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
      ->check(accepted_by(plan::checked_dimensions));
  add_number(*command, "--memory", a->memory_gib, 1e-6, 1e6,
             "GiB that a device may hold; default: as the machine says, of the smallest device");
  command->add_flag("--recompute", a->recompute, plan_recompute_help);
  add_choice<bool>(*command, "--objective", a->simulated, {{"costs", false}, {"simulated", true}},
                   plan_objective_help);
  add_number(*command, "--history", a->history, 1, 2,
             "Tensors of a parameter's size that the solver keeps: 2 for Adam and AdaDelta, 1 for the "
             "others");
  command->add_flag(
      "--frontier", a->frontier,
      "Tell what less memory would cost, and what more would save; with --recompute, also by it");
  command->add_option("--out", a->out, "Write the strategy, for --strategy of the other commands");
  command->add_option("--json", a->json, "Write the plan, or the sweep, as JSON");
  command->add_option("--report", a->report, "Write a page, index.html, into this folder");
  command
      ->add_option("--sweep", a->sweep,
                   "Plan and simulate every combination: devices=4..64 batch=256,32/device link=12,25 (GB/s)")
      ->expected(1, 3)
      ->excludes("--out")
      ->excludes("--frontier")
      ->excludes("--objective");
  add_number(*command, "--most-simulated", a->most_simulated, 0, most_ranks,
             "With --sweep: simulate points of at most so many devices; others are added up, as if nothing "
             "were hidden")
      ->needs("--sweep");
  command->add_option("--csv", a->csv, "With --sweep: write its points as CSV")->needs("--sweep");
  command->footer(
      help_footer({"cortado plan --model models/vgg-16/train_val.prototxt --machine layer-wise-p100 "
                   "--devices 4 --batch 128 --out plan.json"}));
  refuse_empty_names(*command, {"--model", "--machine", "--out", "--json", "--csv", "--report"});
  return {command, [a] { run_plan(*a); }};
}

}  // namespace cortado
