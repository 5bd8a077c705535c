#include <climits>
#include <fmt/format.h>
#include <memory>
#include <set>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/launch.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/job/join_ranks.h"
#include "cortado/job/membership.h"
#include "cortado/job/signals.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/net/net_files.h"
#include "cortado/net/solver_state.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/terminal/progress_bar.h"
#include "cortado/terminal/training_lines.h"
#include "cortado/train/gather.h"
#include "cortado/train/snapshot_names.h"
#include "cortado/train/trainer.h"
#include "cortado/train/training_files.h"
#include "cortado/train/warnings.h"
#include "cortado/train/watched_run.h"

namespace cortado {
namespace {

struct TrainArguments {
  std::string command_line;
  std::string solver, weights, snapshot, snapshot_format, log_format;
  TrainingFileNames files;
  int level = 0;
  std::string stages;
  std::string sigint_effect = "stop", sighup_effect = "snapshot";
  std::vector<std::string> overrides;
  NetOverrides nets;
  int reader_threads = 1, restarts = 0, min_ranks = 1;
  JobOptions job;
  std::string hosts_file;  // read by start_job() (app/launch.h)
  std::string origin;      // the snapshot to go on from: of a job that was started again its newest
};

caffe::SolverParameter solver_message(const TrainArguments& a) {
  caffe::SolverParameter solver = read_solver(a.solver);
  for (const std::string& assignment : a.overrides) override_field(solver, assignment);
  solver.mutable_train_state()->set_level(a.level);
  for (const std::string& stage : split_list(a.stages)) solver.mutable_train_state()->add_stage(stage);
  return solver;
}

// Returns the weights to start from: the command line's, else the solver file's.
std::vector<std::string> weights_of(const TrainArguments& a, const SolverOptions& options) {
  if (!a.snapshot.empty()) return {};
  return a.weights.empty() ? options.weights : weight_files(a.weights);
}

// Loads the snapshot or the weights that the training starts from; returns their files.
std::vector<std::string> start_from(const TrainArguments& a, const SolverOptions& options, Trainer& trainer) {
  for (const std::string& snapshot : {a.origin, a.snapshot}) {
    const std::string path = snapshot.empty() ? "" : trainer.restore(snapshot, snapshot != a.snapshot).path;
    if (path.empty()) continue;
    log_line("caffe.cpp:241", fmt::format("Resuming from {}", path));
    log_line(our_line, fmt::format("{} iterations are done", trainer.iteration()));
    return {path};
  }
  const std::vector<std::string> weights = weights_of(a, options);
  for (const std::string& path : weights) {
    log_line("caffe.cpp:155", fmt::format("Finetuning from {}", path));
    print_passed_over(path, trainer.load_weights(path));
  }
  return weights;
}

// Throws UserError unless all ranks train the same nets in the same way.
void check_same_training(const TrainArguments& a, const caffe::SolverParameter& message,
                         const SolverNets& nets, Communicator& job) {
  std::vector<StartFact> facts = facts_of(nets);
  facts.insert(facts.begin(), {"solver " + a.solver, message.SerializeAsString()});
  facts.push_back({"--snapshot", a.origin});
  facts.push_back({"--weights", a.weights});
  facts.push_back({"--snapshot-format", a.snapshot_format});
  facts.push_back({"--trace", a.files.trace});
  facts.push_back({"--output", a.files.output});
  facts.push_back({"--tensorboard", fmt::format("{} every {}", a.files.tensorboard, a.files.histograms)});
  check_same_start(a.job.cut, job, std::move(facts));
}

CommandFiles files_of(const TrainArguments& a, const SolverOptions& options, const SolverNets& nets) {
  CommandFiles files;
  files.reads({a.solver, a.origin});
  files.reads(weights_of(a, options));
  add_inputs(files, a.job);
  files.writes("--log", a.files.log);
  files.writes("--plot", a.files.plot);
  files.writes("--trace", a.files.trace);
  files.writes_into("--tensorboard", a.files.tensorboard);
  add_files(files, nets.train.file);
  std::set<std::string> added = {nets.train.file.path};
  for (const SolverNet& test : nets.tests)
    if (added.insert(test.file.path).second) add_files(files, test.file);
  return files;
}

// Says what is trained: in Caffe's lines or, above a progress bar, in one.
void print_start(const Trainer& trainer, const SolverOptions& options, const std::string& lr_policy,
                 const RankDevice& device, bool lines) {
  const Network& network = trainer.train_net().network();
  const std::string size = fmt::format(
      "{} layers, {} parameters, solver {}, batch {}", network.nodes().size(), network.parameter_count(),
      solver_name(options.update.solver), trainer.train_net().batch_size() * options.iter_size);
  if (!lines) return log_line(our_line, fmt::format("Solving {}: {}", network.name(), size));
  log_line("caffe.cpp:211", device.use());
  log_line(our_line, size);
  log_line("solver.cpp:56", "Solver scaffolding done.");
  log_line("caffe.cpp:249", "Starting Optimization");
  log_line("solver.cpp:272", fmt::format("Solving {}", network.name()));
  log_line("solver.cpp:273", fmt::format("Learning Rate Policy: {}", lr_policy));
}

void print_end(const Trainer& trainer, bool stopped) {
  if (const int64_t skipped = trainer.skipped_records())
    log_line(our_line, fmt::format("Broken records skipped: {}", skipped));
  log_line(stopped ? "solver.cpp:295" : "caffe.cpp:259",
           stopped ? "Optimization stopped early." : "Optimization Done.");
}

std::unique_ptr<TrainingObserver> display_of(const TrainArguments& a, const SolverOptions& options,
                                             const Trainer& trainer, bool first) {
  if (first && !writes_lines(a.log_format)) return std::make_unique<ProgressBar>(trainer.iteration());
  return std::make_unique<TrainingLines>(options);
}

// The arguments and the job must outlive the options.
Trainer::Options trainer_options(const TrainArguments& a, const SolverOptions& options, Communicator& job) {
  return {.reader_threads = a.reader_threads,
          .strategy = strategy_name(a.job.cut, job.size()),
          .communicator = &job,
          .device = a.job.cut.device,
          .find_strategy =
              [&a, &job, history = history_tensors(options)](const Network& network) {
                return strategy_of(a.job.cut, network, job, history, printed_messages());
              },
          .select_kernels =
              [&a, &job](const Network& network, const CompileOptions& options) {
                return select_kernels(a.job.cut, network, job, options, print_notice);
              },
          .notice = print_notice,
          .restores = !a.origin.empty() || !a.snapshot.empty()};
}

void check_options(const TrainArguments& a) {
  if (!a.snapshot.empty() && !a.weights.empty())
    throw UserError("--snapshot and --weights: give one; a snapshot holds its weights");
  if (!a.files.output.empty() && !(a.files.log.empty() && a.files.plot.empty()))
    throw UserError("--output, --log and --plot: give --output or the others; its folder has log and curve");
  if (!a.files.plot.empty() && !a.files.plot.ends_with(".svg"))
    throw UserError(fmt::format("--plot {}: pictures are SVG; give a name that ends in .svg", a.files.plot));
}

bool run_in_job(Trainer& trainer, const Communicator& job, StopFlags& flags, bool may_restart) {
  JobRank* rank = JobMembership::watched_rank();
  const bool keeps = rank != nullptr && may_restart && job.size() > 1;
  const bool ended = keeps ? run_watched(trainer, flags, *rank) : trainer.run(flags);
  if (rank != nullptr && !ended) rank->report_stopped();
  return ended;
}

void run_train(TrainArguments a) {
  check_options(a);
  set_log_format(a.log_format);
  std::unique_ptr<Communicator> job = join_job(a.job);
  a.origin = snapshot_of_job(a.snapshot, a.restarts);
  caffe::SolverParameter message = solver_message(a);
  SolverOptions options = solver_options(message, a.solver);
  if (!a.snapshot_format.empty())
    options.snapshot_format = snapshot_format_named(a.snapshot_format, a.solver);
  SolverNets nets = solver_nets(message, a.solver);
  override_data(nets, a.nets, a.solver);
  print_warnings(fields_without_effect(message, a.solver));
  print_warnings(warnings_of(nets));
  print_warnings(precision_warnings(a.nets.precision));
  if (!a.files.output.empty()) {
    a.files.log = log_in(a.files.output);
    options.snapshot_prefix = prefix_in(a.files.output, options.snapshot_prefix);
  }
  TrainingFiles written(a.files, a.origin, *job, started_again());
  const CommandFiles files = files_of(a, options, nets);
  check_command_files(files, *job);
  check_same_training(a, message, nets, *job);
  Trainer trainer(options, nets, trainer_options(a, options, *job));
  print_warnings(undecayed_parameters(trainer.train_net().network(), options.update));
  const bool first = job->rank() == 0;
  if (a.job.verbose && first) print_kernels(trainer.executor(), "the training net");
  std::vector<std::string> inputs = start_from(a, options, trainer);
  at_first_rank(job.get(), [&] {
    check_snapshots_spare(options, trainer.iteration(), inputs);
    return std::string();
  });
  // Before any rank goes on: the parent passes a signal on to all of them.
  StopFlags flags;
  const SignalWatch signals(
      {signal_effect_named(a.sigint_effect), signal_effect_named(a.sighup_effect), SignalEffect::stop},
      flags.stop, flags.snapshot);
  check_same_start(a.job.cut, *job, {{"snapshot " + a.origin, std::to_string(trainer.iteration())}});

  inputs.insert(inputs.end(), {a.solver, a.job.cut.strategy});
  written.begin(a.command_line, std::move(inputs), with_found_nets(message, a.solver), trainer);
  JobObserver parent;
  trainer.watch(parent);
  std::unique_ptr<TrainingObserver> display = display_of(a, options, trainer, first);
  trainer.watch(*display);
  print_start(trainer, options, message.lr_policy(), a.job.device, writes_lines(a.log_format));
  const bool ended = run_in_job(trainer, *job, flags, a.restarts > 0);
  display.reset();
  written.end();
  print_end(trainer, !ended || flags.stop);
}

void add_watching_options(CLI::App& command, TrainArguments& a) {
  command.add_option("--output", a.files.output,
                     "Make this folder, with the log, a table of tests, curves, snapshots, solver and "
                     "strategy; one of a training that goes on is taken");
  command.add_option("--log", a.files.log, "Write one JSON object a line for each iteration and test");
  command.add_option("--plot", a.files.plot, "Draw the loss and test curves (SVG) at the end");
  command.add_option("--trace", a.files.trace,
                     "Write the last iteration's steps, for Perfetto or chrome://tracing");
  command.add_option("--tensorboard", a.files.tensorboard,
                     "Write losses, tests and speed into this folder, for TensorBoard to watch");
  add_number(command, "--tensorboard-histograms", a.files.histograms, 0, most_iterations,
             "With --tensorboard: iterations between two histograms of each weight; 0: none");
}

}  // namespace

Command add_train_command(CLI::App& app, const std::string& command_line) {
  auto a = std::make_shared<TrainArguments>();
  a->command_line = command_line;
  CLI::App* command = app.add_subcommand("train", "Train a network by a solver file");
  command->add_option("--solver", a->solver, "Solver file (prototxt)")->required();
  command->add_option("--weights", a->weights, "Start from these weights: a.caffemodel,b.h5,c.safetensors");
  command->add_option("--snapshot", a->snapshot,
                      "Go on from a .solverstate, .solverstate.h5 or .safetensors");
  add_number(*command, "--level", a->level, INT_MIN, INT_MAX,
             "Level of the training net's state, in place of the files'");
  command->add_option("--stage", a->stages, "Stages of the training net's state, besides the files': a,b");
  command->add_option("--set", a->overrides,
                      "Override a field of the solver file: base_lr=0.02 (repeatable)");
  add_number(*command, "--batch", a->nets.batch, 1, most_samples_of_batch,
             "Batch size of the training net; default: its file's");
  add_number(*command, "--test-batch", a->nets.test_batch, 1, most_samples_of_batch,
             "Batch size of the test nets; default: their files'");
  add_precision_option(*command, a->nets.precision);
  add_source_option(*command, "--source", a->nets.sources, "the training net");
  add_source_option(*command, "--test-source", a->nets.test_sources, "the test nets");
  add_watching_options(*command, *a);
  auto formats = CLI::IsMember({"cortado", "caffe", "hdf5"});
  command
      ->add_option("--snapshot-format", a->snapshot_format,
                   "cortado, caffe or hdf5; default: the solver file's")
      ->check(formats);
  auto effects = CLI::IsMember({"snapshot", "stop", "none"});
  command
      ->add_option("--sigint-effect", a->sigint_effect, "On SIGINT: snapshot, stop (with a snapshot) or none")
      ->check(effects)
      ->capture_default_str();
  command
      ->add_option("--sighup-effect", a->sighup_effect, "On SIGHUP: snapshot, stop (with a snapshot) or none")
      ->check(effects)
      ->capture_default_str();
  add_number(*command, "--reader-threads", a->reader_threads, 1, most_threads,
             "Decoding threads of each source layer");
  add_log_format_option(*command, a->log_format);
  add_job_options(*command, a->job);
  add_number(*command, "--restarts", a->restarts, 0, longest_time_limit,
             "When a rank or host is lost: start the job again on what is left, at most so often");
  add_number(*command, "--min-ranks", a->min_ranks, 1, most_ranks,
             "With --restarts: end the job where fewer ranks are left");
  command->add_option("--hosts-file", a->hosts_file,
                      "Hosts and their ranks, a line such as a:2 for each, for the list in --launch; changes "
                      "count from the next snapshot on");
  command->footer(help_footer({"cortado train --solver examples/shapes/solver.prototxt",
                               "cortado train --solver examples/shapes/solver.prototxt --set base_lr=0.02 "
                               "--log shapes.jsonl --plot "
                               "shapes.svg",
                               "cortado train --solver examples/shapes/solver.prototxt --output demo/first "
                               "--tensorboard demo/first/events",
                               "cortado train --solver examples/shapes/solver.prototxt --snapshot "
                               "demo/shapes_iter_2000.solverstate",
                               "cortado train --solver examples/shapes/solver.prototxt --ranks 2"}));
  refuse_empty_names(*command, {"--solver", "--weights", "--snapshot", "--log", "--plot", "--trace",
                                "--output", "--tensorboard", "--hosts-file"});
  return {command, [a] { run_train(*a); }};
}

}  // namespace cortado
