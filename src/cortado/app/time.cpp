#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sys/resource.h>

#include "cortado/app/algorithm_report.h"
#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/help.h"
#include "cortado/app/job_trace.h"
#include "cortado/app/load_without_data.h"
#include "cortado/app/log_lines.h"
#include "cortado/app/named_files.h"
#include "cortado/app/number_option.h"
#include "cortado/app/page.h"
#include "cortado/app/time_lines.h"
#include "cortado/auto/trial.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/parallel_for.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/kernels/peak.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_costs.h"
#include "cortado/report/table.h"
#include "cortado/report/time_report.h"
#include "cortado/report/trace.h"
#include "cortado/sim/modelled_computing.h"
#include "cortado/sim/predict.h"
#include "cortado/sim/simulated_job.h"
#include "cortado/train/gather.h"
#include "cortado/train/resident_data.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct TimeArguments {
  ModelOptions model;
  MachineOptions machine;
  std::string json, trace, report, predict_out, compute = "kernels", modelled_machine, log_format,
                                                command_line;
  int iterations = 50;
  bool predict = false, algorithms = false;
};

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

// What an iteration should have taken by costs measured here (job_costs.h).
struct PredictedTimes {
  Prediction prediction;
  SimulatedJob simulated;  // messages travel while computing where the program lets them
  Machine machine;
  std::vector<int> nodes;
};

PredictedTimes predicted_times(const Network& network, const CompileOptions& options, Communicator& job) {
  JobCosts costs(job, options.kernels.only, print_notice);
  PredictedTimes times{predict(network, options, costs.costs(), costs.machine().node_of_devices()),
                       simulate_job(network, options.strategies, options.schedule, costs.simulated()),
                       costs.machine().machine(), costs.machine().node_of_devices()};
  costs.save();
  return times;
}

// --compute model: the machine whose figures steps take; else nothing.
std::optional<DeviceGraph> modelled_machine(const TimeArguments& a, int ranks) {
  if (a.compute != "model") {
    if (!a.modelled_machine.empty()) throw UserError("--machine: goes with --compute model alone");
    return std::nullopt;
  }
  if (a.modelled_machine.empty())
    throw UserError("--compute model: give the machine whose figures steps take, as in --machine lassen");
  if (a.predict || !a.predict_out.empty())
    throw UserError(
        "--compute model: nothing is computed that --predict could be compared with; leave it out");
  return load_machine(a.modelled_machine).first(ranks);
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
  const double hidden = times.simulated.simulation.iteration.count;
  fmt::print(
      "iteration: {:.3f} ms measured; predicted {:.3f} ms with nothing hidden ({}), {:.3f} ms simulated, "
      "with communication behind computing ({})\n",
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
          {"overlapped_step_seconds", times.simulated.simulation.iteration.count},
          {"layers", std::move(list)}};
}

// Prints it and writes the machine; gives it as JSON.
Json report_prediction(const TimeArguments& a, const PredictedTimes& times,
                       const std::vector<PredictedLayer>& layers, const std::vector<double>& measured,
                       double step) {
  print_prediction(times, layers, step);
  if (!a.predict_out.empty()) {
    const Machine machine = corrected(times.machine, times.prediction, times.nodes, measured);
    write_file_atomically(a.predict_out, machine_text(DeviceGraph(machine)));
  }
  return prediction_json(times, layers);
}

// What was measured, for the page.
std::string about(const TimeArguments& a, const Communicator& job, const TimeReport& report) {
  const auto count = [](int64_t number, const char* one) {
    return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
  };
  std::string text = fmt::format("measured on {} of {}, batch {}", count(job.size(), "rank"),
                                 count(compute_threads(), "thread"), report.images);
  if (job.size() > 1) text += ", strategy " + strategy_of(a.machine, job);
  if (a.compute == "model") text += ", computing as long as machine " + a.modelled_machine + " would";
  return text + fmt::format("; medians of {}", count(a.iterations, "iteration"));
}

// --algorithms: each convolution by each implementation, in place of whole iterations.
void time_algorithms(const TimeArguments& a, const Network& network, CompileOptions options,
                     Communicator& job) {
  if (job.size() > 1)
    throw UserError(fmt::format("--algorithms: of one rank alone, these are {}", job.size()));
  const std::string kernels = a.machine.fast_math ? fast_math : "";
  JobTimes times(job, print_notice);
  Algorithms algorithms(times, kernels);
  options.kernels = {.only = kernels};
  const Program program = compile(network, std::move(options)).program;
  const auto convolutions = convolutions_of(network, program, algorithms);
  if (convolutions.empty())
    throw UserError(fmt::format("--algorithms: net '{}' has no convolution", network.name()));
  times.save();
  const double peak = times.machine().device(0).peak.per_second;
  fmt::print("{}\n{}", algorithms_text(convolutions, peak),
             fmt::format("peak {:.1f} GFLOP/s of {} threads\n", 1e-9 * peak, compute_threads()));
  if (a.json.empty()) return;
  const Json json{{"peak_flops_per_second", peak},
                  {"threads", compute_threads()},
                  {"convolutions", algorithms_json(convolutions, peak)}};
  write_file_atomically(a.json, json.dump(2) + "\n");
}

// What a run gave; slices, of an iteration near the median, only where someone wants them.
struct Run {
  std::vector<IterationTimes> times;
  TimeReport report;
  std::vector<int64_t> memory;  // of the ranks, in bytes
  std::vector<TraceSlice> slices;
  RunReport::Drawn drawn;  // which iteration they are of
};

RunReport::Drawn drawn_of(const Run& run, size_t index) {
  std::vector<double> steps;
  for (const IterationTimes& times : run.times) steps.push_back(times.step);
  std::ranges::sort(steps);
  const size_t last = steps.size() - 1;
  return {.number = static_cast<int>(index) + 1,
          .count = static_cast<int>(steps.size()),
          .step = {run.times[index].step},
          .lower = {steps[last / 4]},
          .upper = {steps[last - last / 4]}};
}

// All ranks call it.
Run run_of(const TimeArguments& a, Executor& executor, Optimizer& optimizer, Communicator& job) {
  Run run;
  const double peak = measure_peak();
  const Traffic before = job.traffic();
  TimeLines lines(writes_lines(a.log_format), a.iterations);
  // Which iteration is near the median is known at the end: some are kept, from all of the run.
  constexpr size_t most_kept = 32;
  const size_t stride = (static_cast<size_t>(a.iterations) + most_kept - 1) / most_kept;
  const bool wanted = !a.trace.empty() || !a.report.empty();
  std::vector<Timeline> kept;
  size_t done = 0;
  run.times = run_iterations(executor, optimizer, a.iterations, [&](const IterationTimes& times) {
    lines.iteration(times);
    if (wanted && done++ % stride == 0) kept.push_back(executor.timeline());
  });
  lines.end(executor.network(), executor.program(), run.times);
  TimeReport& report = run.report = report_of(executor.network(), executor.program(), run.times);
  report.bytes =
      job.sum(static_cast<double>(job.traffic().sent - before.sent)) / (a.iterations + warm_up_iterations);
  report.ranks = job.size();
  report.peak = job.sum(std::max(peak, measure_peak()));
  report.flops = job.sum(report.flops);
  report.of_peak = fmt::format("peak of {} threads, measured in this run", compute_threads() * job.size());
  run.memory = values_of_ranks(job, peak_memory_bytes());
  if (!wanted) return run;
  const size_t drawn = values_of_ranks(job, nearest_to(report, run.times, stride)).front();  // as rank 0 says
  run.drawn = drawn_of(run, drawn);
  run.slices = slices_of_job(executor, kept[drawn / stride], job);
  return run;
}

// Prints and writes what was asked for: rank 0 alone.
void tell(const TimeArguments& a, const Run& run, const std::optional<PredictedTimes>& predicted,
          const Network& network, const Communicator& job) {
  fmt::print("{}", times_text(run.report));
  const int64_t largest = *std::ranges::max_element(run.memory);
  fmt::print("{:.1f} MiB resident at most{}\n", static_cast<double>(largest) / (1 << 20),
             job.size() > 1 ? ", of the rank that needs most" : "");
  Json json = times_json(run.report);
  json["threads"] = compute_threads();
  json["peak_memory_bytes"] = largest;
  json["peak_memory_bytes_of_ranks"] = run.memory;
  RunReport page = run_report_of(run.report, network, about(a, job, run.report), run.slices);
  page.drawn = run.drawn;
  page.origin = page_origin(a.command_line);
  if (predicted) {
    const std::vector<double> measured = step_medians(run.times);
    ensure(measured.size() == predicted->prediction.steps.size(),
           "the predicted program is the one that ran");
    const auto layers = compare(predicted->prediction, network, measured);
    json["prediction"] = report_prediction(a, *predicted, layers, measured, run.report.step);
    page.prediction = run_prediction_of(predicted->simulated, layers, network);
  }
  if (!a.report.empty()) write_page(a.report, run_page(page));
  if (!a.trace.empty()) write_file_atomically(a.trace, trace_json(run.slices));
  if (!a.json.empty()) write_file_atomically(a.json, json.dump(2) + "\n");
}

void run_time(const TimeArguments& a) {
  set_log_format(a.log_format);
  std::unique_ptr<Communicator> job = join_job(a.machine);
  CommandFiles files;
  add_inputs(files, a.model);
  add_inputs(files, a.machine);
  files.reads(a.modelled_machine);
  files.writes("--json", a.json);
  files.writes("--trace", a.trace);
  files.writes("--predict-out", a.predict_out);
  files.writes_page("--report", a.report);
  check(files, *job);
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  check_same_start(a.machine, *job,
                   {{"net " + a.model.model, loaded.net.SerializeAsString()},
                    {"--batch", std::to_string(a.model.batch)},
                    {"--input-shape", a.model.input_shape},
                    {"--iterations", std::to_string(a.iterations)},
                    {"--compute", a.compute},
                    {"--machine", a.modelled_machine}});
  ResidentData data(loaded.network);
  ParameterStore parameters;
  const std::optional<DeviceGraph> modelled = modelled_machine(a, job->size());
  CompileOptions options = compile_options(a.machine, *job, loaded.network);
  if (a.algorithms) return time_algorithms(a, loaded.network, std::move(options), *job);
  if (options.kernels.of_task && (a.predict || !a.predict_out.empty()))
    throw UserError("--predict: predicts the kernels of the list; leave --kernels measured out");
  std::optional<PredictedTimes> predicted;
  if (a.predict || !a.predict_out.empty()) predicted = predicted_times(loaded.network, options, *job);
  Compiled compiled = compile(loaded.network, std::move(options));
  data.restrict_to(compiled.program.samples());
  ExecutorOptions execution{.communicator = job.get()};
  if (modelled) execution.in_place_of_computing = ModelledComputing(compiled.program, *modelled);
  Executor executor(loaded.network, std::move(compiled), parameters, data.sources(), std::move(execution));
  if (a.machine.verbose && job->rank() == 0) print_kernels(executor, loaded.network.name());
  SolverOptions solver;  // plain momentum, as most nets are trained
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, job.get()));
  const Run run = run_of(a, executor, optimizer, *job);
  if (job->rank() == 0) tell(a, run, predicted, loaded.network, *job);
}

}  // namespace

Command add_time_command(CLI::App& app, const std::string& command_line) {
  auto a = std::make_shared<TimeArguments>();
  a->command_line = command_line;
  CLI::App* command =
      app.add_subcommand("time", "Time a model layer by layer on random data that stay in memory");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  add_number(*command, "--iterations", a->iterations, 1, most_iterations, "Iterations to take medians of");
  command->add_option("--json", a->json, "Write the times as JSON");
  command->add_option("--trace", a->trace,
                      "Write the steps of an iteration near the median, for Perfetto or chrome://tracing");
  command->add_option("--report", a->report, "Write a page, index.html, into this folder");
  command->add_flag(
      "--algorithms", a->algorithms,
      "Time each convolution by each implementation, beside what the cost model says, and pick");
  command->add_flag("--predict", a->predict,
                    "Print predicted beside measured times, by costs measured on this machine");
  command->add_option("--predict-out", a->predict_out,
                      "Write this machine's file with the efficiencies that this run reached");
  command
      ->add_option("--compute", a->compute,
                   "kernels, or model: steps wait as long as --machine says in place of computing")
      ->check(CLI::IsMember({"kernels", "model"}))
      ->capture_default_str();
  command->add_option("--machine", a->modelled_machine,
                      "For --compute model: a machine file, or the name of one in machines/");
  add_log_format_option(*command, a->log_format);
  add_machine_options(*command, a->machine);
  command->footer(
      help_footer({"cortado time --model models/alexnet/train_val.prototxt --batch 16 --iterations 10",
                   "cortado time --model models/alexnet/train_val.prototxt --batch 16 --ranks 2 --strategy "
                   "owt --trace trace.json"}));
  refuse_empty_names(*command, {"--model", "--json", "--trace", "--report", "--predict-out", "--machine"});
  return {command, [a] { run_time(*a); }};
}

}  // namespace cortado
