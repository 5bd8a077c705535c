#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cortado/app/limits.h"
#include "cortado/auto/job_cut.h"
#include "cortado/base/command_files.h"
#include "cortado/comm/communicator.h"
#include "cortado/exec/executor.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/source_override.h"
#include "cortado/train/trainer.h"

namespace cortado {

void add_schedule_options(CLI::App& command, ScheduleChanges& options);

// Options that say how to compute.
struct MachineOptions {
  JobCut cut;
  int threads = 0;  // 0: as many as this process may use
  bool no_bind = false;
  int ranks = 0;       // 0: as many as the launcher started
  std::string launch;  // this and what follows: used by start_job() (app/launch.h)
  int stall_timeout = default_time_limit, peer_timeout = default_time_limit;  // seconds
  std::string gpu;           // refused, or with `cpu_instead` a wish that is not met
  bool cpu_instead = false;  // see also CORTADO_CPU_INSTEAD
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
// Prints what a user should know though the work goes on, on stderr.
void print_notice(const std::string& line);

// Prints what `--strategy auto` chose and why.
void print_choice(const AutoChoice& choice);
// Notices and choices, printed.
JobCutWords printed_words();

// Options that say which network of a model file.
struct ModelOptions : NetChanges {
  std::string model;
  std::string phase;
  int level = 0;
  std::string stages;       // "a,b"
  std::string input_shape;  // "3x227x227", where the data are not at hand
};
void add_model_options(CLI::App& command, ModelOptions& options);
void add_precision_option(CLI::App& command, Precision& precision);
// --source, or another name, of "the net".
void add_source_option(CLI::App& command, const std::string& name, std::vector<std::string>& sources,
                       const std::string& net);
// --input-shape, for the commands that need no data.
void add_shape_option(CLI::App& command, ModelOptions& options);
// The state of the net of `file`, the model.
caffe::NetState net_state_of(const ModelOptions& options, const NetFile& file, Phase otherwise);

// Builds the net that net_state_of() chooses. Opens its data only where their shapes cannot be known
// otherwise.
LoadedNetwork load_without_data(const ModelOptions& options, Phase otherwise);

// Prints what the user should know of a file, on stderr of the first rank.
void print_warnings(const std::vector<std::string>& lines);

// --gpu and --cpu-instead. This version has no GPU support: without the latter the former is refused. Gives
// the line that says so; empty without --gpu.
void add_gpu_options(CLI::App& command, MachineOptions& options);
std::string refusal_of_gpu(const MachineOptions& options);

// --log-format: of set_log_format() (terminal/log_lines.h).
void add_log_format_option(CLI::App& command, std::string& name);

// Prints the layers that loading the weights of `file` passed over.
void print_passed_over(const std::string& file, const PassedOver& layers);

// Prints which kernel each task got, to stderr.
void print_kernels(const Executor& executor, const std::string& title);

// What these options have a command read.
void add_inputs(CommandFiles& files, const ModelOptions& model);
void add_inputs(CommandFiles& files, const MachineOptions& machine);

}  // namespace cortado
