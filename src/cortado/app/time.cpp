#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/machine/file.h"
#include "cortado/measure/algorithms.h"
#include "cortado/measure/job_prediction.h"
#include "cortado/report/algorithm_report.h"
#include "cortado/report/prediction_report.h"
#include "cortado/report/run_page.h"
#include "cortado/report/simulation_report.h"
#include "cortado/report/table.h"
#include "cortado/sim/model_computing.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/terminal/time_lines.h"
#include "cortado/train/gather.h"
#include "cortado/train/resident_data.h"
#include "cortado/train/timed_run.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct TimeArguments {
  ModelOptions model;
  JobOptions job;
  std::string json, trace, report, predict_out, compute = "kernels", modelled_machine, log_format,
                                                command_line;
  int iterations = 50;
  bool predict = false, algorithms = false;
};

// Returns the machine of --compute model; nothing without that option.
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

// Returns the line of the page that says what was measured.
std::string about(const TimeArguments& a, const Communicator& job, const TimeReport& report) {
  std::string text = fmt::format("measured on {} of {}, batch {}", counted(job.size(), "rank"),
                                 counted(compute_threads(), "thread"), report.images);
  if (job.size() > 1) text += ", strategy " + strategy_name(a.job.cut, job.size());
  if (a.compute == "model") text += ", computing as long as machine " + a.modelled_machine + " would";
  return text + fmt::format("; medians of {}", counted(a.iterations, "iteration"));
}

// Does --algorithms: times each convolution by each implementation, in place of whole iterations.
void time_algorithms(const TimeArguments& a, const Network& network, CompileOptions options,
                     Communicator& job) {
  if (job.size() > 1 || !a.job.device.all_cpu())
    throw UserError(
        fmt::format("--algorithms: of one rank on a CPU alone; here are {}", a.job.device.text()));
  options.kernels = {.kernels = a.job.cut.fast_math ? fast_math : ""};
  JobTimes times(job, print_notice);
  const auto [convolutions, peak] = measure_convolutions(network, std::move(options), times);
  if (convolutions.empty())
    throw UserError(fmt::format("--algorithms: net '{}' has no convolution", network.name()));
  fmt::print("{}\npeak {:.1f} GFLOP/s of {} threads\n", algorithms_text(convolutions, peak),
             1e-9 * peak.per_second, compute_threads());
  if (!a.json.empty()) write_file_atomically(a.json, algorithms_json(convolutions, peak, compute_threads()));
}

// Prints what was predicted and writes the machine; adds it to the JSON and the page.
void report_prediction(const TimeArguments& a, const JobPrediction& predicted, const Network& network,
                       const TimedRun& run, Json& json, RunReport& page) {
  const auto measured = step_medians(run.times);
  ensure(measured.size() == predicted.prediction.steps.size(), "the predicted program is the one that ran");
  const auto layers = compare(predicted.prediction, network, measured);
  const Seconds simulated = predicted.simulated.simulation.iteration;
  fmt::print("{}", prediction_text(layers, simulated, run.report.step));
  json["prediction"] = prediction_json(layers, simulated);
  page.prediction = run_prediction_of(predicted.simulated, layers, network);
  if (a.predict_out.empty()) return;
  const Machine machine = corrected(predicted.machine, predicted.prediction, predicted.nodes, measured);
  write_file_atomically(a.predict_out, machine_text(DeviceGraph(machine)));
}

// Prints the times and writes the files that were asked for. Rank 0 alone calls it.
void report_times(const TimeArguments& a, const TimedRun& run, const std::optional<JobPrediction>& predicted,
                  const Network& network, const Communicator& job) {
  fmt::print("{}", times_text(run.report));
  fmt::print("{}\n", memory_text(run));
  Json json = run_json(run);
  RunReport page = run_report_of(run.report, network, about(a, job, run.report), run.slices);
  page.drawn = run.drawn;
  page.origin = page_origin(a.command_line);
  if (predicted) report_prediction(a, *predicted, network, run, json, page);
  if (!a.report.empty()) write_page("--report", a.report, run_page(page));
  if (!a.trace.empty()) write_file_atomically(a.trace, trace_json(run.slices));
  if (!a.json.empty()) write_file_atomically(a.json, json.dump(2) + "\n");
}

void run_time(TimeArguments& a) {
  set_log_format(a.log_format);
  std::unique_ptr<Communicator> job = join_job(a.job);
  CommandFiles files;
  add_inputs(files, a.model);
  add_inputs(files, a.job);
  files.reads(a.modelled_machine);
  files.writes("--json", a.json);
  files.writes("--trace", a.trace);
  files.writes("--predict-out", a.predict_out);
  files.writes_page("--report", a.report);
  check_command_files(files, *job);
  print_warnings(precision_warnings(a.model.precision));
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  check_same_start(a.job.cut, *job,
                   {{"net " + a.model.model, loaded.net.SerializeAsString()},
                    {"--batch", std::to_string(a.model.batch)},
                    {"--input-shape", a.model.input_shape},
                    {"--iterations", std::to_string(a.iterations)},
                    {"--compute", a.compute},
                    {"--machine", a.modelled_machine}});
  ResidentData data(loaded.network);
  ParameterStore parameters(*a.job.cut.device);
  const std::optional<DeviceGraph> modelled = modelled_machine(a, job->size());
  const bool predicts = a.predict || !a.predict_out.empty();
  if (predicts && !a.algorithms && (a.job.cut.kernels == measured_kernels || a.job.cut.reproducible))
    throw UserError("--predict: predicts the list's kernels; leave --kernels measured or --reproducible out");
  CompileOptions options = compile_options(a.job.cut, loaded.network, *job, printed_messages());
  options.passing_gradients = job->size() == 1 && a.job.cut.device->host_accessible();  // as training does
  if (a.algorithms) return time_algorithms(a, loaded.network, std::move(options), *job);
  std::optional<JobPrediction> predicted;
  if (predicts) predicted = predict_on_job(loaded.network, options, *job, print_notice, *a.job.cut.device);
  Compiled compiled = compile(loaded.network, std::move(options));
  std::map<std::string, BatchSource> sources = data.sources(compiled.program.samples());
  if (modelled) model_computing(compiled, *modelled);
  Executor executor(loaded.network, std::move(compiled), parameters, std::move(sources),
                    {.communicator = job.get()});
  if (a.job.verbose && job->rank() == 0) print_kernels(executor, loaded.network.name());
  TimeLines lines(writes_lines(a.log_format), a.iterations, a.job.device.use());
  const TimedRun run =
      time_iterations(executor, parameters, *job, a.iterations, !a.trace.empty() || !a.report.empty(),
                      [&](const IterationTimes& times) { lines.iteration(times); });
  lines.end(executor.network(), executor.program(), run.times);
  if (job->rank() == 0) report_times(a, run, predicted, loaded.network, *job);
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
  add_job_options(*command, a->job);
  command->footer(
      help_footer({"cortado time --model models/alexnet/train_val.prototxt --batch 16 --iterations 10",
                   "cortado time --model models/alexnet/train_val.prototxt --batch 16 --ranks 2 --strategy "
                   "owt --trace trace.json"}));
  refuse_empty_names(*command, {"--model", "--json", "--trace", "--report", "--predict-out", "--machine"});
  return {command, [a] { run_time(*a); }};
}

}  // namespace cortado
