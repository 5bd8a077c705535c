#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "cortado/app/auto_strategy.h"
#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/job_trace.h"
#include "cortado/app/launch.h"
#include "cortado/app/training_lines.h"
#include "cortado/app/training_log.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/gather.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

struct TrainArguments {
  std::string solver, weights, snapshot, log, plot, trace, snapshot_format;
  int level = 0;
  std::string stages;
  std::string sigint_effect = "stop", sighup_effect = "snapshot";
  std::vector<std::string> overrides;
  int reader_threads = 1;
  MachineOptions machine;
};

SignalEffect effect_of(const std::string& name) {
  if (name == "stop") return SignalEffect::stop;
  return name == "snapshot" ? SignalEffect::snapshot : SignalEffect::none;
}

void apply_snapshot_options(const TrainArguments& a, SolverOptions& options) {
  if (a.snapshot_format == "cortado") options.snapshot_format = SnapshotFormat::cortado;
  if (a.snapshot_format == "caffe") options.snapshot_format = SnapshotFormat::caffe;
  if (a.snapshot_format == "hdf5") options.snapshot_format = SnapshotFormat::hdf5;
  if (!options.snapshot_prefix.empty()) return;
  options.snapshot_prefix = std::filesystem::path(a.solver).replace_extension().string();
}

caffe::SolverParameter solver_message(const TrainArguments& a) {
  caffe::SolverParameter solver = read_solver(a.solver);
  for (const std::string& assignment : a.overrides) override_field(solver, assignment);
  if (a.level != 0) solver.mutable_train_state()->set_level(a.level);
  for (const std::string& stage : split_list(a.stages)) solver.mutable_train_state()->add_stage(stage);
  return solver;
}

// Weights to start from: the command line's, else the solver file's.
void start_from(const TrainArguments& a, const SolverOptions& options, Trainer& trainer) {
  if (!a.snapshot.empty()) {
    trainer.restore(a.snapshot);
    fmt::print("Resuming from {} at iteration {}\n", a.snapshot, trainer.iteration());
    return;
  }
  for (const std::string& path : a.weights.empty() ? options.weights : split_list(a.weights)) {
    fmt::print("Finetuning from {}\n", path);
    print_passed_over(path, trainer.load_weights(path));
  }
}

// Throws UserError unless all ranks train the same nets alike.
void check_same_training(const TrainArguments& a, const caffe::SolverParameter& message,
                         const SolverNets& nets, Communicator& job) {
  std::vector<StartFact> facts = {{"solver " + a.solver, message.SerializeAsString()},
                                  fact_of("net", nets.train.file, nets.train.state)};
  for (const SolverNet& net : nets.tests) facts.push_back(fact_of("test net", net.file, net.state));
  facts.push_back({"--snapshot", a.snapshot});
  facts.push_back({"--weights", a.weights});
  facts.push_back({"--snapshot-format", a.snapshot_format});
  facts.push_back({"--trace", a.trace});
  check_same_start(a.machine, job, std::move(facts));
}

void print_start(const Trainer& trainer, const SolverOptions& options) {
  const Network& network = trainer.train_net().network();
  fmt::print("Solving {}: {} layers, {} parameters, solver {}, batch {}\n", network.name(),
             network.nodes().size(), network.parameter_count(), solver_name(options.update.solver),
             trainer.train_net().batch_size() * options.iter_size);
  std::fflush(stdout);
}

// All ranks call it; the first one writes.
void write_trace(const std::string& path, const Executor& executor, const Timeline& mine, Communicator& job) {
  const std::vector<TraceSlice> slices = slices_of_job(executor, mine, job);
  at_first_rank(&job, [&] {
    write_file_atomically(path, trace_json(slices));
    return std::string();
  });
}

void run_train(const TrainArguments& a) {
  if (!a.snapshot.empty() && !a.weights.empty()) {
    throw UserError("--snapshot and --weights: give one; a snapshot holds its weights");
  }
  if (!a.plot.empty() && !a.plot.ends_with(".svg")) {
    throw UserError(fmt::format("--plot {}: pictures are SVG; give a name that ends in .svg", a.plot));
  }
  std::unique_ptr<Communicator> job = join_job(a.machine);
  at_first_rank(job.get(), [&] {
    check_folder_of("--trace", a.trace);
    return std::string();
  });
  caffe::SolverParameter message = solver_message(a);
  SolverOptions options = solver_options(message, a.solver);
  apply_snapshot_options(a, options);
  const SolverNets nets = solver_nets(message, a.solver);
  check_same_training(a, message, nets, *job);
  Trainer trainer(options, nets,
                  {only_kernel(a.machine), a.reader_threads, strategy_of(a.machine, *job), job.get(),
                   [&](const Network& network) { return strategy_for_job(a.machine, network, *job); },
                   measured_kernels(a.machine, *job)});
  const bool first = job->rank() == 0;
  if (a.machine.verbose && first) print_kernels(trainer.executor(), "the training net");
  start_from(a, options, trainer);
  check_same_start(a.machine, *job, {{"snapshot " + a.snapshot, std::to_string(trainer.iteration())}});

  std::unique_ptr<TrainingObserver> display;
  const bool terminal = first && writes_to_terminal();
  if (terminal) {
    display = std::make_unique<ProgressBar>(trainer.iteration());
  } else {
    display = std::make_unique<TrainingLines>(options);
  }
  JobObserver parent;
  trainer.watch(parent);
  trainer.watch(*display);
  std::unique_ptr<TrainingLog> log;
  if (!a.log.empty() && first) {
    log = std::make_unique<TrainingLog>(a.log, !a.snapshot.empty());
    trainer.watch(*log);
  }
  TrainingCurves curves;
  if (!a.plot.empty()) trainer.watch(curves);
  LastTimeline last(trainer.executor());
  if (!a.trace.empty()) trainer.watch(last);

  print_start(trainer, options);
  SignalWatch signals({effect_of(a.sigint_effect), effect_of(a.sighup_effect), SignalEffect::stop});
  trainer.run(signals);
  display.reset();
  if (!a.plot.empty() && first)
    write_file_atomically(a.plot, curves.svg("Training " + trainer.train_net().network().name()));
  if (!a.trace.empty()) write_trace(a.trace, trainer.executor(), last.timeline(), *job);
  if (const int64_t skipped = trainer.skipped_records()) fmt::print("Broken records skipped: {}\n", skipped);
  fmt::print("{}\n", signals.stop_asked() ? "Optimization stopped early." : "Optimization Done.");
}

}  // namespace

Command add_train_command(CLI::App& app) {
  auto a = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train a network by a solver file");
  command->add_option("--solver", a->solver, "Solver file (prototxt)")->required();
  command->add_option("--weights", a->weights, "Start from these weights: a.caffemodel,b.h5,c.safetensors");
  command->add_option("--snapshot", a->snapshot,
                      "Go on from a .solverstate, .solverstate.h5 or .safetensors");
  command->add_option("--level", a->level, "Level of the training net's state");
  command->add_option("--stage", a->stages, "Stages of the training net's state: a,b");
  command->add_option("--set", a->overrides,
                      "Override a field of the solver file: base_lr=0.02 (repeatable)");
  command->add_option("--log", a->log, "Write one JSON object a line for each iteration and test");
  command->add_option("--plot", a->plot, "Draw the loss and test curves (SVG) at the end");
  command->add_option("--trace", a->trace,
                      "Write the last iteration's steps, for Perfetto or chrome://tracing");
  auto formats = CLI::IsMember({"cortado", "caffe", "hdf5"});
  command
      ->add_option("--snapshot-format", a->snapshot_format,
                   "cortado, caffe or hdf5; default: the solver file's")
      ->check(formats);
  auto effects = CLI::IsMember({"snapshot", "stop", "none"});
  command
      ->add_option("--sigint-effect", a->sigint_effect, "On SIGINT: snapshot, stop (with a snapshot) or none")
      ->check(effects);
  command
      ->add_option("--sighup-effect", a->sighup_effect, "On SIGHUP: snapshot, stop (with a snapshot) or none")
      ->check(effects);
  command->add_option("--reader-threads", a->reader_threads, "Decoding threads of each source layer")
      ->check(at_least_one());
  add_machine_options(*command, a->machine);
  return {command, [a] { run_train(*a); }};
}

}  // namespace cortado
