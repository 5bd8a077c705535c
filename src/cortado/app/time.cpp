#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sys/resource.h>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/job_costs.h"
#include "cortado/app/predict.h"
#include "cortado/app/resident_data.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/peak.h"
#include "cortado/machine/file.h"
#include "cortado/report/table.h"
#include "cortado/train/optimizer.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct TimeArguments {
  ModelOptions model;
  MachineOptions machine;
  std::string json, predict_out;
  int iterations = 50;
  bool predict = false;
};

// Seconds of one iteration: the whole, and per work of the program.
struct IterationTimes {
  double step = 0, update = 0, exposed = 0;
  std::vector<double> forward, backward, communication;
  std::vector<double> steps;  // each step of the program
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

IterationTimes times_of(const Executor& executor, double step_seconds) {
  const Program& program = executor.program();
  IterationTimes times{.step = step_seconds, .exposed = executor.exposed_communication().count};
  for (auto* list : {&times.forward, &times.backward, &times.communication})
    list->resize(program.works.size());
  for (const TimelineEntry& entry : executor.timeline()) {
    const Step& step = program.steps[static_cast<size_t>(entry.step)];
    const double seconds = entry.end.count - entry.begin.count;
    times.steps.push_back(seconds);
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

Json report_json(const TimeReport& r) {
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
  return {{"step_seconds", r.step},
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
}

// What an iteration should have taken by costs measured here (job_costs.h).
struct PredictedTimes {
  Prediction prediction;
  Machine machine;
  std::vector<int> nodes;
};

PredictedTimes predicted_times(const Network& network, const ExecutorOptions& options, Communicator& job) {
  JobCosts costs(job, options.only_kernel);
  PredictedTimes times{
      predict(network, options.strategies, options.only_kernel, costs.costs(), costs.nodes()),
      costs.machine().machine(), costs.nodes()};
  costs.save();
  return times;
}

// "12.3 / 11.9"; nothing where there is nothing.
std::string pair_text(double predicted, double measured) {
  if (predicted == 0 && measured == 0) return "";
  return fmt::format("{:.3f} / {:.3f}", 1e3 * predicted, 1e3 * measured);
}

std::string error_text(double predicted, double measured) {
  return measured > 0 ? fmt::format("{:+.1f} %", 100 * (predicted / measured - 1)) : "";
}

double sum_of(const double (&parts)[std::size(step_parts)]) {
  return std::accumulate(std::begin(parts), std::end(parts), 0.0);
}

void print_prediction(const PredictedTimes& times, const std::vector<PredictedLayer>& layers, double step) {
  fmt::print("\npredicted / measured, in ms, and the prediction's error; steps of rank 0\n");
  std::vector<Table::Column> columns{{"layer", Table::Align::left}};
  for (StepPart part : step_parts) {
    if (part != StepPart::other) columns.push_back({std::string(name_of(part))});
  }
  columns.push_back({"error"});
  Table table(columns);
  PredictedLayer sum{.name = "sum of layers"};
  auto add = [&](const PredictedLayer& layer) {
    std::vector<std::string> cells{layer.name};
    for (size_t part = 0; part + 1 < std::size(step_parts); ++part)
      cells.push_back(pair_text(layer.predicted[part], layer.measured[part]));
    cells.push_back(error_text(sum_of(layer.predicted), sum_of(layer.measured)));
    table.add(std::move(cells));
  };
  for (const PredictedLayer& layer : layers) {
    for (size_t part = 0; part < std::size(step_parts); ++part) {
      sum.predicted[part] += layer.predicted[part];
      sum.measured[part] += layer.measured[part];
    }
    if (sum_of(layer.measured) > 0) add(layer);
  }
  table.add_rule();
  add(sum);
  fmt::print("{}\n", table.text());
  const double one_by_one = sum_of(sum.predicted);
  const double hidden = iteration_seconds(times.prediction.program, times.prediction.steps);
  fmt::print(
      "iteration: {:.3f} ms measured; predicted {:.3f} ms with nothing hidden ({}), {:.3f} ms with "
      "communication behind computing ({})\n",
      1e3 * step, 1e3 * one_by_one, error_text(one_by_one, step), 1e3 * hidden, error_text(hidden, step));
}

Json prediction_json(const PredictedTimes& times, const std::vector<PredictedLayer>& layers) {
  Json list = Json::array();
  double sum = 0;
  for (const PredictedLayer& layer : layers) {
    Json entry{{"name", layer.name}};
    for (size_t part = 0; part < std::size(step_parts); ++part) {
      const std::string name(name_of(step_parts[part]));
      entry[name + "_predicted_seconds"] = layer.predicted[part];
      entry[name + "_measured_seconds"] = layer.measured[part];
    }
    sum += sum_of(layer.predicted);
    list.push_back(std::move(entry));
  }
  return {{"step_seconds", sum},
          {"overlapped_step_seconds", iteration_seconds(times.prediction.program, times.prediction.steps)},
          {"layers", std::move(list)}};
}

std::vector<double> step_medians(const std::vector<IterationTimes>& times) {
  std::vector<double> medians;
  for (size_t step = 0; step < times.front().steps.size(); ++step) {
    std::vector<double> values;
    for (const IterationTimes& iteration : times) values.push_back(iteration.steps[step]);
    medians.push_back(median(std::move(values)));
  }
  return medians;
}

// Prints it and writes the machine; gives it as JSON.
Json report_prediction(const TimeArguments& a, const PredictedTimes& times, const Network& network,
                       const std::vector<double>& measured, double step) {
  ensure(measured.size() == times.prediction.steps.size(), "the predicted program is the one that ran");
  const auto layers = compare(times.prediction, network, measured);
  print_prediction(times, layers, step);
  if (!a.predict_out.empty()) {
    const Machine machine = corrected(times.machine, times.prediction, times.nodes, measured);
    write_file_atomically(a.predict_out, machine_text(DeviceGraph(machine)));
  }
  return prediction_json(times, layers);
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
  const ExecutorOptions options = execution_options(a.machine, *job, loaded.network);
  std::optional<PredictedTimes> predicted;
  if (a.predict || !a.predict_out.empty()) predicted = predicted_times(loaded.network, options, *job);
  Executor executor(loaded.network, parameters, data.sources(), options);
  data.restrict_to(executor.samples());
  if (a.machine.verbose && job->rank() == 0) print_kernels(executor, loaded.network.name());
  SolverOptions solver;  // plain momentum, as most nets are trained
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, job.get()));

  double peak = measure_peak();
  const Traffic before = job->traffic();
  const std::vector<IterationTimes> times = run_iterations(executor, optimizer, a.iterations);
  TimeReport report = report_of(executor, times);
  report.bytes = job->sum(static_cast<double>(job->traffic().sent - before.sent)) / (a.iterations + warm_up);
  report.ranks = job->size();
  report.peak = job->sum(std::max(peak, measure_peak()));
  report.flops = job->sum(report.flops);
  report.memory = peak_memory_of_ranks(*job);
  if (job->rank() > 0) return;
  print_times(report);
  Json json = report_json(report);
  if (predicted) {
    json["prediction"] = report_prediction(a, *predicted, loaded.network, step_medians(times), report.step);
  }
  if (!a.json.empty()) write_file_atomically(a.json, json.dump(2) + "\n");
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
  command->add_flag("--predict", a->predict,
                    "Print predicted beside measured times, by costs measured on this machine");
  command->add_option("--predict-out", a->predict_out,
                      "Write this machine's file with the efficiencies that this run reached");
  add_machine_options(*command, a->machine);
  return {command, [a] { run_time(*a); }};
}

}  // namespace cortado
