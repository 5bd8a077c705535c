#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/resident_data.h"
#include "cortado/base/file.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/peak.h"
#include "cortado/report/table.h"
#include "cortado/train/optimizer.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct TimeArguments {
  ModelOptions model;
  MachineOptions machine;
  std::string json;
  int iterations = 50;
};

// Seconds of one iteration: the whole, and per work of the program.
struct IterationTimes {
  double step = 0, update = 0;
  std::vector<double> forward, backward;
};

// Medians over the iterations of one layer (or chain of layers run as one kernel).
struct LayerTimes {
  std::string name;
  double forward = 0, backward = 0, gflops = 0;
};

struct TimeReport {
  std::vector<LayerTimes> layers;
  double step = 0, update = 0, flops = 0, peak = 0, images = 0;
  double percent_of_peak() const { return 100 * flops / (step * peak); }
};

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double forward_flops(const Network& network, const Work& work) {
  double flops = 0;
  for (int node : work.nodes) flops += network.forward_flops(node).count;
  return flops;
}

// A gradient of the inputs costs what the forward pass does, and so does one of the parameters.
double backward_flops(const Network& network, const Work& work) {
  auto any = [](const std::vector<bool>& wanted) {
    return std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  };
  int passes = any(work.task.input_gradients) ? 1 : 0;
  if (work.task.layer().splits_backward() && any(work.task.parameter_gradients)) ++passes;
  return passes * forward_flops(network, work);
}

IterationTimes times_of(const Executor& executor, double step_seconds) {
  const Program& program = executor.program();
  IterationTimes times{.step = step_seconds};
  times.forward.resize(program.works.size());
  times.backward.resize(program.works.size());
  for (const TimelineEntry& entry : executor.timeline()) {
    const Step& step = program.steps[static_cast<size_t>(entry.step)];
    double seconds = entry.end.count - entry.begin.count;
    if (step.kind == Step::Kind::update) times.update += seconds;
    if (step.work < 0) continue;
    bool forward = step.kind == Step::Kind::load || step.kind == Step::Kind::forward;
    (forward ? times.forward : times.backward)[static_cast<size_t>(step.work)] += seconds;
  }
  return times;
}

std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count) {
  constexpr int warm_up = 2;  // first touches of memory
  std::vector<IterationTimes> times;
  for (int i = -warm_up; i < count; ++i) {
    optimizer.begin(i + warm_up, 1e-6);
    optimizer.begin_batch(0);
    auto start = std::chrono::steady_clock::now();
    executor.run(static_cast<uint64_t>(i + warm_up), [&](int entry) { optimizer.gradient(entry); });
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i >= 0) times.push_back(times_of(executor, seconds));
  }
  return times;
}

TimeReport report_of(const Executor& executor, const std::vector<IterationTimes>& times) {
  auto median_of = [&](auto&& pick) {
    std::vector<double> values;
    for (const IterationTimes& iteration : times) values.push_back(pick(iteration));
    return median(std::move(values));
  };
  const Network& network = executor.network();
  TimeReport report;
  report.step = median_of([](const IterationTimes& t) { return t.step; });
  report.update = median_of([](const IterationTimes& t) { return t.update; });
  for (size_t w = 0; w < executor.program().works.size(); ++w) {
    const Work& work = executor.program().works[w];
    const Network::Node& node = network.nodes()[static_cast<size_t>(work.nodes.front())];
    if (node.layer->is_source()) {
      const Shape& batch = network.tensors()[static_cast<size_t>(node.outputs.front())].shape;
      if (report.images == 0) report.images = static_cast<double>(batch[0]);
      continue;
    }
    LayerTimes layer{.name = name_of(work, network)};
    layer.forward = median_of([&](const IterationTimes& t) { return t.forward[w]; });
    layer.backward = median_of([&](const IterationTimes& t) { return t.backward[w]; });
    double flops = forward_flops(network, work) + backward_flops(network, work);
    layer.gflops = flops / 1e9 / std::max(1e-12, layer.forward + layer.backward);
    report.flops += flops;
    report.layers.push_back(std::move(layer));
  }
  return report;
}

void print_times(const TimeReport& r) {
  Table table({{"layer", Table::Align::left}, {"forward ms"}, {"backward ms"}, {"GFLOP/s"}, {"% of peak"}});
  double forward = 0, backward = 0;
  for (const LayerTimes& layer : r.layers) {
    table.add({layer.name, fmt::format("{:.3f}", 1e3 * layer.forward),
               fmt::format("{:.3f}", 1e3 * layer.backward), fmt::format("{:.1f}", layer.gflops),
               fmt::format("{:.1f}", 1e11 * layer.gflops / r.peak)});
    forward += layer.forward;
    backward += layer.backward;
  }
  table.add_rule();
  table.add({"update", "", fmt::format("{:.3f}", 1e3 * r.update), "", ""});
  table.add(
      {"sum of layers", fmt::format("{:.3f}", 1e3 * forward), fmt::format("{:.3f}", 1e3 * backward), "", ""});
  table.add({"iteration", "", fmt::format("{:.3f}", 1e3 * r.step),
             fmt::format("{:.1f}", r.flops / 1e9 / r.step), fmt::format("{:.1f}", r.percent_of_peak())});
  fmt::print("{}\n{:.1f} images/s; peak of {} threads, measured in this run: {:.1f} GFLOP/s\n", table.text(),
             r.images / r.step, compute_threads(), r.peak / 1e9);
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

std::string json_text(const TimeReport& r) {
  Json layers = Json::array();
  double compute = r.update;
  for (const LayerTimes& layer : r.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward_seconds", layer.forward},
                      {"backward_seconds", layer.backward},
                      {"communication_seconds", 0.0},
                      {"gflops", layer.gflops}});
    compute += layer.forward + layer.backward;
  }
  Json report{{"step_seconds", r.step},
              {"compute_seconds", compute},
              {"communication_seconds", 0.0},
              {"exposed_communication_seconds", 0.0},
              {"bytes_per_iteration", 0},
              {"percent_of_peak", r.percent_of_peak()},
              {"images_per_second", r.images / r.step},
              {"update_seconds", r.update},
              {"peak_gflops", r.peak / 1e9},
              {"threads", compute_threads()},
              {"peak_memory_bytes", peak_memory_bytes()},
              {"layers", layers}};
  return report.dump(2) + "\n";
}

void run_time(const TimeArguments& a) {
  apply_machine_options(a.machine);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  ResidentData data(loaded.network);
  ParameterStore parameters;
  ExecutorOptions execution;
  execution.only_kernel = a.machine.kernels;
  Executor executor(loaded.network, parameters, data.sources(), execution);
  if (a.machine.verbose) print_kernels(executor, loaded.network.name());
  SolverOptions solver;  // plain momentum, as most nets are trained
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, executor.parameter_entries());

  double peak = measure_peak();
  TimeReport report = report_of(executor, run_iterations(executor, optimizer, a.iterations));
  report.peak = std::max(peak, measure_peak());
  print_times(report);
  if (!a.json.empty()) write_file_atomically(a.json, json_text(report));
}

}  // namespace

Command add_time_command(CLI::App& app) {
  auto a = std::make_shared<TimeArguments>();
  CLI::App* command =
      app.add_subcommand("time", "Time a model layer by layer on random data that stay in memory");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command->add_option("--iterations", a->iterations, "Iterations to take medians of")->check(at_least_one());
  command->add_option("--json", a->json, "Write the times as JSON");
  add_machine_options(*command, a->machine);
  return {command, [a] { run_time(*a); }};
}

}  // namespace cortado
