#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/app/number_option.h"
#include "cortado/base/fields.h"
#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/net/net_file.h"
#include "cortado/train/same_start.h"
#include "cortado/train/trainer.h"

namespace cortado {

// Options that say how to compute.
// In place of what a strategy says of its schedule.
struct ScheduleOptions {
  std::string gradient_chunks;  // empty: as the strategy says
  bool no_late_updates = false;
  bool halves = false;
  std::vector<std::string> replicate;  // layers whose gradients every replica computes
  static constexpr auto fields =
      std::tuple{field("gradient-chunks", &ScheduleOptions::gradient_chunks),
                 field("no-late-updates", &ScheduleOptions::no_late_updates),
                 field("halves", &ScheduleOptions::halves), field("replicate", &ScheduleOptions::replicate)};
};
void add_schedule_options(CLI::App& command, ScheduleOptions& options);
void apply(const ScheduleOptions& options, const Network& network, Strategy& strategy);

struct MachineOptions {
  int threads = 0;  // 0: as many as this process may use
  bool no_bind = false;
  std::string strategy;  // empty: auto on several ranks, single on one
  int ranks = 0;         // 0: as many as the launcher started
  std::string launch;    // this and what follows: used by start_job() (app/launch.h)
  int stall_timeout = default_time_limit, peer_timeout = default_time_limit;  // seconds
  std::string gpu;           // refused, or with `cpu_instead` a wish that is not met
  bool cpu_instead = false;  // see also CORTADO_CPU_INSTEAD
  std::string kernels;       // only this implementation; or measured_kernels (algorithms.h)
  bool fast_math = false;    // kernels with larger rounding errors, too: not with `kernels`
  ScheduleOptions schedule;
  bool verbose = false;
};
// How ranks are started and watched.
void add_launch_options(CLI::App& command, MachineOptions& options);
// Threads and ranks alone.
void add_rank_options(CLI::App& command, MachineOptions& options);
void add_machine_options(CLI::App& command, MachineOptions& options);
// Joins the job, sets the compute threads, and silences the standard output of all ranks but the first.
// Throws UserError for what this version does not do.
std::unique_ptr<Communicator> join_job(const MachineOptions& options);
std::string strategy_of(const MachineOptions& options, const Communicator& job);
// What that names, with the schedule that the options say.
Strategy strategy_for_job(const MachineOptions& options, const Network& network, Communicator& job,
                          int history = 1);

// Prints what a user should know though the work goes on, on stderr.
void print_notice(const std::string& line);

// Which kernels: --kernels, or fast_math; "": the list of all.
std::string kernels_of(const MachineOptions& options);
// By those, the kernels of a network that is compiled so. All ranks call it: --kernels measured measures.
KernelChoice select_kernels(const MachineOptions& options, const Network& network, Communicator& job,
                            const CompileOptions& compiled);

// Throws UserError unless all ranks have the same `facts`, build, strategy and kernels. All ranks call it,
// before they build what must be alike.
void check_same_start(const MachineOptions& options, Communicator& job, std::vector<StartFact> facts);
StartFact fact_of(const std::string& what, const NetFile& file, const caffe::NetState& state);

// How this rank of the job compiles `network`. Throws UserError where the strategy does not fit.
CompileOptions compile_options(const MachineOptions& options, Communicator& job, const Network& network);

// Options that say which network of a model file.
struct ModelOptions {
  std::string model;
  std::string phase;
  int level = 0;
  std::string stages;                // "a,b"
  int batch = 0;                     // 0: as the file says
  std::string input_shape;           // "3x227x227", where the data are not at hand
  std::vector<std::string> sources;  // PATH or LAYER=PATH
};
void add_model_options(CLI::App& command, ModelOptions& options);
// --source, or another name, of "the net".
void add_source_option(CLI::App& command, const std::string& name, std::vector<std::string>& sources,
                       const std::string& net);
// --input-shape, for the commands that need no data.
void add_shape_option(CLI::App& command, ModelOptions& options);
// The state of the net of `file`, the model.
caffe::NetState net_state_of(const ModelOptions& options, const NetFile& file, Phase otherwise);

// That net, built without opening its data where their shapes can be known otherwise.
LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise);

// Prints what the user should know of a file, on stderr of the first rank.
void print_warnings(const std::vector<std::string>& lines);

// What the options say in place of the file: batch size and sources of the net of that state.
void apply(const ModelOptions& options, const caffe::NetState& state, NetFile& file);

// --gpu and --cpu-instead. This version has no GPU support: without the latter the former is refused. Gives
// the line that says so; empty without --gpu.
void add_gpu_options(CLI::App& command, MachineOptions& options);
std::string refusal_of_gpu(const MachineOptions& options);

// Prints the layers that loading the weights of `file` passed over.
void print_passed_over(const std::string& file, const PassedOver& layers);

// Prints which kernel each task got, to stderr.
void print_kernels(const Executor& executor, const std::string& title);

}  // namespace cortado
