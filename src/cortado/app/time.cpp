#include <algorithm>
#include <chrono>
#include <cstring>
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
  double step = 0, update = 0, exposed = 0;
  std::vector<double> forward, backward, communication;
};

// Medians over the iterations of one layer (or chain of layers run as one kernel) on this rank.
// communication: messages that bring its inputs, sums within it and of its gradients, whether they are
// hidden behind computing or not.
struct LayerTimes {
  std::string name;
  double forward = 0, backward = 0, communication = 0, gflops = 0;
};

// Layers are this rank's; flops, peak and bytes those of all ranks together.
struct TimeReport {
  std::vector<LayerTimes> layers;
  int ranks = 1;
  double step = 0, update = 0, exposed = 0, flops = 0, peak = 0, images = 0, bytes = 0;
  std::vector<int64_t> memory;  // per rank: the most bytes that were resident
  int64_t largest_memory() const { return *std::ranges::max_element(memory); }
  double percent_of_peak() const { return 100 * flops / (step * peak); }
  double communication() const {
    double seconds = 0;
    for (const LayerTimes& layer : layers) seconds += layer.communication;
    return seconds;
  }
};

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of this rank's share.
double forward_flops(const Executor& executor, const Work& work) {
  double flops = 0;
  for (int operation : work.operations) {
    const auto& part = executor.program().placement.operations[static_cast<size_t>(operation)];
    // Behind partial sums stands a bias of the same node.
    if (part.layer->type() != executor.network().nodes()[static_cast<size_t>(part.node)].layer->type())
      continue;
    int64_t all = 0;
    for (const auto& box : part.domain) all += box ? box->shape().size() : 0;
    const double share = static_cast<double>(work.task.domain_box.shape().size()) / static_cast<double>(all);
    flops += share * executor.network().forward_flops(part.node).count;
  }
  return flops;
}

// A gradient of the inputs costs what the forward pass does, and so does one of the parameters.
double backward_flops(const Executor& executor, const Work& work) {
  auto any = [](const std::vector<bool>& wanted) {
    return std::find(wanted.begin(), wanted.end(), true) != wanted.end();
  };
  int passes = any(work.task.input_gradients) ? 1 : 0;
  if (work.task.layer().splits_backward() && any(work.task.parameter_gradients)) ++passes;
  return passes * forward_flops(executor, work);
}

// The compute work whose messages a communication step brings: of its own work, of the parameter, or the
// layer that a movement is for. -1: the report.
int work_served(const Program& program, const Step& step) {
  auto computes = [&](auto&& belongs) {
    for (size_t w = 0; w < program.works.size(); ++w) {
      const Work& work = program.works[w];
      if (work.kind == Work::Kind::compute && belongs(work)) return static_cast<int>(w);
    }
    return -1;
  };
  auto has = [](const std::vector<int>& list, int value) {
    return std::ranges::find(list, value) != list.end();
  };
  if (step.parameter >= 0)
    return computes([&](const Work& work) { return has(work.parameters, step.parameter); });
  const Work& own = program.works[static_cast<size_t>(step.work)];
  if (own.kind == Work::Kind::compute) return step.work;
  if (own.nodes.empty()) return -1;
  return computes([&](const Work& work) { return has(work.nodes, own.nodes[0]); });
}

IterationTimes times_of(const Executor& executor, double step_seconds) {
  const Program& program = executor.program();
  IterationTimes times{.step = step_seconds, .exposed = executor.exposed_communication().count};
  for (auto* list : {&times.forward, &times.backward, &times.communication})
    list->resize(program.works.size());
  for (const TimelineEntry& entry : executor.timeline()) {
    const Step& step = program.steps[static_cast<size_t>(entry.step)];
    const double seconds = entry.end.count - entry.begin.count;
    if (step.kind == Step::Kind::update) times.update += seconds;
    if (step.lane == Lane::communication) {
      const int work = step.kind == Step::Kind::load ? -1 : work_served(program, step);
      if (work >= 0) times.communication[static_cast<size_t>(work)] += seconds;
    } else if (step.work >= 0) {
      const bool forward = step.kind == Step::Kind::forward || step.kind == Step::Kind::forward_partial;
      (forward ? times.forward : times.backward)[static_cast<size_t>(step.work)] += seconds;
    }
  }
  return times;
}

constexpr int warm_up = 2;  // iterations: first touches of memory

std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count) {
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
  report.exposed = median_of([](const IterationTimes& t) { return t.exposed; });
  for (size_t w = 0; w < executor.program().works.size(); ++w) {
    const Work& work = executor.program().works[w];
    if (work.kind == Work::Kind::source && report.images == 0) {
      const Network::Node& node = network.nodes()[static_cast<size_t>(work.nodes.front())];
      const Shape& batch = network.tensors()[static_cast<size_t>(node.outputs.front())].shape;
      report.images = static_cast<double>(batch[0]);
    }
    if (work.kind != Work::Kind::compute) continue;
    LayerTimes layer{.name = name_of(work, network)};
    layer.forward = median_of([&](const IterationTimes& t) { return t.forward[w]; });
    layer.backward = median_of([&](const IterationTimes& t) { return t.backward[w]; });
    layer.communication = median_of([&](const IterationTimes& t) { return t.communication[w]; });
    double flops = forward_flops(executor, work) + backward_flops(executor, work);
    layer.gflops = flops / 1e9 / std::max(1e-12, layer.forward + layer.backward);
    report.flops += flops;
    report.layers.push_back(std::move(layer));
  }
  return report;
}

void print_times(const TimeReport& r) {
  std::vector<Table::Column> columns{{"layer", Table::Align::left}, {"forward ms"}, {"backward ms"}};
  const bool job = r.ranks > 1;
  if (job) columns.push_back({"communication ms"});
  columns.insert(columns.end(), {{"GFLOP/s"}, {"% of peak"}});
  Table table(columns);
  auto add = [&](std::vector<std::string> cells, const std::string& communication) {
    if (job) cells.insert(cells.begin() + 3, communication);
    table.add(std::move(cells));
  };
  double forward = 0, backward = 0;
  for (const LayerTimes& layer : r.layers) {
    add({layer.name, fmt::format("{:.3f}", 1e3 * layer.forward), fmt::format("{:.3f}", 1e3 * layer.backward),
         fmt::format("{:.1f}", layer.gflops), fmt::format("{:.1f}", 1e11 * layer.gflops * r.ranks / r.peak)},
        fmt::format("{:.3f}", 1e3 * layer.communication));
    forward += layer.forward;
    backward += layer.backward;
  }
  table.add_rule();
  add({"update", "", fmt::format("{:.3f}", 1e3 * r.update), "", ""}, "");
  add({"sum of layers", fmt::format("{:.3f}", 1e3 * forward), fmt::format("{:.3f}", 1e3 * backward), "", ""},
      fmt::format("{:.3f}", 1e3 * r.communication()));
  add({"iteration", "", fmt::format("{:.3f}", 1e3 * r.step), fmt::format("{:.1f}", r.flops / 1e9 / r.step),
       fmt::format("{:.1f}", r.percent_of_peak())},
      "");
  fmt::print("{}\n", table.text());
  if (job) {
    fmt::print(
        "layers: those of rank 0; {:.3f} ms of its communication were not hidden; {:.3f} MiB sent by all "
        "ranks "
        "in an iteration\n",
        1e3 * r.exposed, r.bytes / (1 << 20));
  }
  fmt::print("{:.1f} MiB resident at most{}\n", static_cast<double>(r.largest_memory()) / (1 << 20),
             job ? ", of the rank that needs most" : "");
  fmt::print("{:.1f} images/s; peak of {} threads, measured in this run: {:.1f} GFLOP/s\n", r.images / r.step,
             compute_threads() * r.ranks, r.peak / 1e9);
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

std::vector<int64_t> peak_memory_of_ranks(Communicator& job) {
  const int64_t mine = peak_memory_bytes();
  std::vector<int64_t> all;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(&mine, 1))))
    std::memcpy(&all.emplace_back(), bytes.data(), sizeof mine);
  return all;
}

std::string json_text(const TimeReport& r) {
  Json layers = Json::array();
  double compute = r.update;
  for (const LayerTimes& layer : r.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward_seconds", layer.forward},
                      {"backward_seconds", layer.backward},
                      {"communication_seconds", layer.communication},
                      {"gflops", layer.gflops}});
    compute += layer.forward + layer.backward;
  }
  Json report{{"step_seconds", r.step},
              {"compute_seconds", compute},
              {"communication_seconds", r.communication()},
              {"exposed_communication_seconds", r.exposed},
              {"bytes_per_iteration", r.bytes},
              {"percent_of_peak", r.percent_of_peak()},
              {"images_per_second", r.images / r.step},
              {"update_seconds", r.update},
              {"peak_gflops", r.peak / 1e9},
              {"ranks", r.ranks},
              {"threads", compute_threads()},
              {"peak_memory_bytes", r.largest_memory()},
              {"peak_memory_bytes_of_ranks", r.memory},
              {"layers", layers}};
  return report.dump(2) + "\n";
}

void run_time(const TimeArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.machine);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  check_same_start(a.machine, *job,
                   {{"net " + a.model.model, loaded.net.SerializeAsString()},
                    {"--batch", std::to_string(a.model.batch)},
                    {"--input-shape", a.model.input_shape},
                    {"--iterations", std::to_string(a.iterations)}});
  ResidentData data(loaded.network);
  ParameterStore parameters;
  Executor executor(loaded.network, parameters, data.sources(),
                    execution_options(a.machine, *job, loaded.network));
  data.restrict_to(executor.samples());
  if (a.machine.verbose && job->rank() == 0) print_kernels(executor, loaded.network.name());
  SolverOptions solver;  // plain momentum, as most nets are trained
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, job.get()));

  double peak = measure_peak();
  const Traffic before = job->traffic();
  TimeReport report = report_of(executor, run_iterations(executor, optimizer, a.iterations));
  report.bytes = job->sum(static_cast<double>(job->traffic().sent - before.sent)) / (a.iterations + warm_up);
  report.ranks = job->size();
  report.peak = job->sum(std::max(peak, measure_peak()));
  report.flops = job->sum(report.flops);
  report.memory = peak_memory_of_ranks(*job);
  print_times(report);
  if (!a.json.empty() && job->rank() == 0) write_file_atomically(a.json, json_text(report));
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
