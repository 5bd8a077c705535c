#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/job_costs.h"
#include "cortado/app/resident_data.h"
#include "cortado/base/file.h"
#include "cortado/cost/analytic.h"
#include "cortado/machine/file.h"
#include "cortado/plan/planner.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;
using plan::Plan;
using plan::PlannedGroup;

struct PlanArguments {
  ModelOptions model;
  MachineOptions here;  // of --machine local
  std::string machine, out, json, dimensions{plan::all_dimensions};
  int devices = 0;
};

std::string milliseconds(Seconds seconds) { return fmt::format("{:.3f}", 1e3 * seconds.count); }

std::string mebibytes(int64_t bytes) { return fmt::format("{:.3f}", static_cast<double>(bytes) / (1 << 20)); }

std::string name_of(const Network& network, const PlannedGroup& group) {
  std::string name;
  for (int node : group.nodes) name += (name.empty() ? "" : " + ") + network.nodes()[node].name;
  return name;
}

Seconds sum_of(const Plan& plan, Seconds (*part)(const PlannedGroup&)) {
  Seconds sum;
  for (const PlannedGroup& group : plan.groups) sum += part(group);
  return sum;
}

Seconds compute_of(const PlannedGroup& group) { return group.compute.total() + group.update; }
Seconds sync_of(const PlannedGroup& group) { return group.sync; }
Seconds transfer_of(const PlannedGroup& group) { return group.transfer + group.sums; }

std::string table_text(const Network& network, const Plan& plan) {
  using Align = Table::Align;
  Table table({{"layers", Align::left},
               {"cut", Align::left},
               {"compute ms"},
               {"sync ms"},
               {"transfer ms"},
               {"sent MiB"},
               {"held MiB"},
               {"next best", Align::left},
               {"adds ms"}});
  for (const PlannedGroup& group : plan.groups) {
    const bool other = std::isfinite(group.runner_up_costs.count);
    table.add(
        {name_of(network, group), group.strategy.config.text(), milliseconds(compute_of(group)),
         milliseconds(sync_of(group)), milliseconds(transfer_of(group)), mebibytes(group.bytes),
         mebibytes(group.memory.count), other ? group.runner_up.text() : "",
         other ? (group.runner_up_bound ? "at least " : "") + milliseconds(group.runner_up_costs) : ""});
  }
  table.add_rule();
  table.add({"iteration: " + milliseconds(plan.seconds) + " ms", "", milliseconds(sum_of(plan, compute_of)),
             milliseconds(sum_of(plan, sync_of)), milliseconds(sum_of(plan, transfer_of)),
             mebibytes(plan.bytes), mebibytes(plan.memory.count), "", ""});
  return table.text();
}

void print_plan(const Network& network, const Plan& plan) {
  fmt::print("{}\n", table_text(network, plan));
  for (const auto& [name, seconds] : plan.baselines) {
    fmt::print("{:>8}: {} ms, {:.2f} times as long\n", name, milliseconds(seconds),
               seconds.count / plan.seconds.count);
  }
  const auto& eliminations = plan.search.eliminations;
  fmt::print(
      "{}: {} configurations priced in {:.1f} ms, searched in {:.1f} ms ({} leaves, {} nodes, {} edges and "
      "{} "
      "vertices of more neighbours eliminated)\n",
      plan.proven ? "optimal" : "not proven optimal", plan.candidates, 1e3 * plan.pricing.count,
      1e3 * plan.search.seconds.count, eliminations.leaves, eliminations.nodes, eliminations.edges,
      eliminations.general);
}

Json degrees_json(const Degrees& degrees) {
  Json json = Json::object();
  auto add = [&](const char* name, int degree) {
    if (degree > 1) json[name] = degree;
  };
  add("n", degrees.n), add("c", degrees.c), add("d", degrees.d), add("h", degrees.h), add("w", degrees.w);
  add("r", degrees.r);
  return json;
}

std::string json_text(const Network& network, const Plan& plan) {
  Json layers = Json::array(), baselines = Json::object();
  for (const PlannedGroup& group : plan.groups) {
    layers.push_back({{"name", network.nodes()[group.nodes[0]].name},
                      {"config", degrees_json(group.strategy.config.degrees)},
                      {"devices", group.strategy.config.devices},
                      {"compute_seconds", compute_of(group).count},
                      {"sync_seconds", sync_of(group).count},
                      {"transfer_seconds", transfer_of(group).count},
                      {"bytes", group.bytes},
                      {"memory_bytes", group.memory.count}});
  }
  for (const auto& [name, seconds] : plan.baselines) baselines[name] = seconds.count;
  Json report{{"cost_seconds", plan.seconds.count},
              {"search_seconds", plan.search.seconds.count},
              {"pricing_seconds", plan.pricing.count},
              {"optimal", plan.proven},
              {"layers", layers},
              {"baselines", baselines},
              {"bytes_per_iteration", plan.bytes},
              {"memory_bytes", plan.memory.count}};
  return report.dump(2) + "\n";
}

void report(const PlanArguments& a, const Network& network, const Plan& plan) {
  if (!a.out.empty()) write_file_atomically(a.out, strategy_text(plan.strategy));
  if (!a.json.empty()) write_file_atomically(a.json, json_text(network, plan));
  print_plan(network, plan);
}

// For the ranks of this job, by costs measured on them.
void plan_here(const PlanArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.here);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  JobCosts costs(*job, "");
  const Plan plan = plan::make_plan(loaded.network, {.devices = job->size(), .dimensions = a.dimensions},
                                    costs.costs(), costs.nodes());
  costs.save();
  if (job->rank() == 0) report(a, loaded.network, plan);
}

void run_plan(const PlanArguments& a) {
  if (a.machine == "local") return plan_here(a);
  DeviceGraph machine = load_machine(a.machine);
  if (a.devices > 0) machine = machine.first(a.devices);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  AnalyticCosts costs(machine);
  std::vector<int> nodes;
  for (int device = 0; device < machine.devices(); ++device) nodes.push_back(machine.node_of(device));
  report(a, loaded.network,
         plan::make_plan(loaded.network, {.devices = machine.devices(), .dimensions = a.dimensions}, costs,
                         nodes));
}

}  // namespace

Command add_plan_command(CLI::App& app) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Find the cheapest way to cut each layer of a model over a machine");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command
      ->add_option("--machine", a->machine,
                   "Machine: a file (.json), the name of a ready one, or local: this one, measured")
      ->required();
  command
      ->add_option("--devices", a->devices, "Use the first so many devices; of local: plan for so many ranks")
      ->check(at_least_one());
  command->add_option("--threads", a->here.threads, "With --machine local: compute threads of each rank")
      ->check(at_least_one());
  command->add_option("--launch", a->here.launch,
                      "With --machine local: command that starts the ranks, as for training");
  command
      ->add_option("--dimensions", a->dimensions,
                   "Cut layers along these alone, of ncdhwr (default: all); the built-in strategies stay")
      ->check([](const std::string& letters) {
        const size_t other = letters.find_first_not_of(plan::all_dimensions);
        return other == std::string::npos ? std::string()
                                          : fmt::format("there is no dimension '{}'; give letters of {}",
                                                        letters[other], plan::all_dimensions);
      });
  command->add_option("--out", a->out, "Write the strategy, for --strategy of the other commands");
  command->add_option("--json", a->json, "Write the plan as JSON");
  return {command, [a] { run_plan(*a); }};
}

}  // namespace cortado
