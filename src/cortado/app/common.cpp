#include "cortado/app/common.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>

#include "cortado/app/launch.h"
#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/cli/choice_option.h"
#include "cortado/cli/number_option.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/processors.h"
#include "cortado/kernels/names.h"
#include "cortado/measure/algorithms.h"
#include "cortado/net/read_net.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/train/load_without_data.h"

namespace cortado {
void add_rank_options(CLI::App& command, MachineOptions& o) {
  add_number(command, "--threads", o.threads, 1, most_threads,
             "Compute threads of each rank; default: its share of the cores it may use");
  command.add_flag("--no-bind", o.no_bind, "Leave it to the system where ranks of one machine run");
  add_number(
      command, "--ranks", o.ranks, 1, most_ranks,
      "Start this many ranks (processes) that share the work; default: as many as the launcher that this "
      "command runs under, else 1");
  add_launch_options(command, o);
}

void add_launch_options(CLI::App& command, MachineOptions& o) {
  command.add_option(
      "--launch", o.launch,
      "Command that starts the ranks, before '-n RANKS': \"mpiexec -hosts a,b\", \"srun\"; default: "
      "this build's mpiexec on this host");
  add_number(command, "--stall-timeout", o.stall_timeout, 0, longest_time_limit,
             "On several ranks: end the job (exit code 3) when a rank's process has not answered for so many "
             "seconds, or all ranks have waited for each other so long; 0: never");
  add_number(command, "--peer-timeout", o.peer_timeout, 1, longest_time_limit,
             "On several ranks: end the job (exit code 3) when a host cannot be reached for so many seconds");
}

void add_schedule_options(CLI::App& command, ScheduleChanges& o) {
  command.add_option(
      "--gradient-chunks", o.gradient_chunks,
      "Gradients that are summed over ranks together: parameter, layer, first:LAYERS (those of "
      "so many layers, then all others), a size such as 4MiB, or one; default: as the strategy "
      "says, else 1MiB");
  command.add_flag("--no-late-updates", o.no_late_updates,
                   "Wait for all sums of gradients at the end of each iteration");
  command.add_flag("--halves", o.halves,
                   "Where halos travel: half of a batch computes while the other half's are under way");
  command
      .add_option("--replicate", o.replicate,
                  "Layers (names, or patterns such as fc*) whose replicas gather inputs and output gradients "
                  "and compute the whole gradients each, in place of summing gradients")
      ->delimiter(',');
}

void add_machine_options(CLI::App& command, MachineOptions& o) {
  add_rank_options(command, o);
  command.add_option(
      "--strategy", o.cut.strategy,
      "How layers are cut over the ranks: auto (the cheapest way, by costs measured here), single, data, "
      "model, owt, spatial, replicated, random:SEED or a file (.json); default: auto");
  add_gpu_options(command, o);
  command.add_option("--kernels", o.cut.kernels,
                     "Where this implementation knows a layer, use no other: reference, lowering-1, ...; or "
                     "measured: for each convolution the one that is fastest on this machine");
  command.add_flag("--fast-math", o.cut.fast_math,
                   "Use kernels with larger rounding errors, too: Winograd's for 3x3 and 5x5 convolutions in "
                   "larger tiles");
  add_schedule_options(command, o.cut.schedule);
  command.add_flag("--verbose", o.verbose, "Tell which kernel each layer got and why faster ones refused");
}

void add_gpu_options(CLI::App& command, MachineOptions& o) {
  command.add_option("--gpu", o.gpu,
                     "Caffe's: all, or numbers as in 0,1. This version has no GPU support: refused without "
                     "--cpu-instead");
  command.add_flag(
      "--cpu-instead", o.cpu_instead,
      "Compute on the CPU where --gpu asks for a GPU; so does CORTADO_CPU_INSTEAD=1 in the environment");
}

std::string refusal_of_gpu(const MachineOptions& o) {
  if (o.gpu.empty()) return "";
  if (o.gpu != "all" && o.gpu.find_first_not_of("0123456789,") != std::string::npos)
    throw UserError(fmt::format("--gpu {}: give all, or numbers as in 0,1", o.gpu));
  const char* variable = std::getenv("CORTADO_CPU_INSTEAD");
  if (!o.cpu_instead && (variable == nullptr || std::string_view(variable) != "1"))
    throw UserError(
        fmt::format("--gpu {}: this version has no GPU support; leave it out or, where it cannot be, add "
                    "--cpu-instead or set CORTADO_CPU_INSTEAD=1 in the environment to compute on the CPU",
                    o.gpu));
  return fmt::format("--gpu {}: this version has no GPU support, it computes on the CPU instead", o.gpu);
}

std::unique_ptr<Communicator> join_job(const MachineOptions& o) {
  const std::string no_gpu = refusal_of_gpu(o);
  if (o.cut.fast_math && !o.cut.kernels.empty())
    throw UserError(
        fmt::format("--fast-math: allows more kernels, and --kernels {} allows fewer; give one of "
                    "them (--kernels winograd-4x4 uses that alone where it can)",
                    o.cut.kernels));
  if (!o.cut.kernels.empty()) require_kernels_named(o.cut.kernels, measured_kernels);
  std::unique_ptr<Communicator> job = join_ranks(o.ranks);
  take_processors(*job, o.threads, !o.no_bind);
  if (job->rank() > 0 && !std::freopen("/dev/null", "w", stdout)) {
    throw UserError("/dev/null cannot be opened");
  }
  if (!no_gpu.empty()) log_line(our_line, no_gpu);
  return job;
}

void print_notice(const std::string& line) { fmt::print(stderr, "cortado: {}\n", line); }

void print_choice(const AutoChoice& choice) {
  if (!choice.obstacle.empty())
    log_line(our_line, fmt::format("strategy auto: as data; no plan: {}", choice.obstacle));
  if (!choice.planned) return;
  if (!choice.misfit.empty())
    log_line(our_line, fmt::format("strategy auto: {}; planned without that limit", choice.misfit));
  log_line(our_line,
           fmt::format("strategy auto: {}; planned in {:.1f} s ({})", choice.text(), choice.planning.count,
                       choice.cached ? "cached" : fmt::format("{} tasks measured", choice.measurements)));
}

JobCutWords printed_words() { return {print_notice, print_choice}; }

void add_model_options(CLI::App& command, ModelOptions& o) {
  command.add_option("--model", o.model, "Model file (prototxt)")->required();
  command.add_option("--phase", o.phase, "TRAIN or TEST; default: TEST for test and show, else TRAIN")
      ->check(CLI::IsMember({"TRAIN", "TEST"}, CLI::ignore_case));
  add_number(command, "--level", o.level, INT_MIN, INT_MAX,
             "Level of the net state, in place of the model file's; default: 0");
  command.add_option("--stage", o.stages, "Stages of the net state, besides the model file's: a,b");
  add_number(command, "--batch", o.batch, 1, most_samples_of_batch,
             "Batch size of all source layers; default: the model file's");
  add_precision_option(command, o.precision);
  add_source_option(command, "--source", o.sources, "the net");
}

void add_precision_option(CLI::App& command, Precision& precision) {
  add_choice<Precision>(command, "--precision", precision,
                        {{"f32", Precision::f32}, {"bf16", Precision::bf16}},
                        "f32, or bf16: activations, their gradients and the weights that kernels read are "
                        "bfloat16, all else stays f32; default: f32");
}

void add_source_option(CLI::App& command, const std::string& name, std::vector<std::string>& sources,
                       const std::string& net) {
  command
      .add_option(
          name, sources,
          fmt::format("Data of {} (LMDB, image list or list of HDF5 files) in place of what its file names: "
                      "PATH, or LAYER=PATH where several layers have a source (repeatable)",
                      net))
      ->type_name("PATH")
      ->allow_extra_args(false);
}

void add_shape_option(CLI::App& command, ModelOptions& o) {
  command.add_option(
      "--input-shape", o.input_shape,
      "Shape of a sample, 3x227x227, where the data are not at hand; of a sample and its labels, "
      "1x64x64,64x64, where each position has one");
}

caffe::NetState net_state_of(const ModelOptions& o, const NetFile& file, Phase otherwise) {
  Phase phase = o.phase.empty() ? otherwise : (std::toupper(o.phase[1]) == 'R' ? Phase::train : Phase::test);
  return net_state(file, phase, o.level, split_list(o.stages));
}

void print_warnings(const std::vector<std::string>& lines) {
  if (launched_rank().value_or(LaunchedRank{}).rank > 0) return;
  for (const std::string& line : lines) fmt::print(stderr, "warning: {}\n", line);
}

LoadedNetwork load_without_data(const ModelOptions& o, Phase otherwise) {
  NetFile file = read_net(o.model);
  print_warnings(file.warnings);
  const caffe::NetState state = net_state_of(o, file, otherwise);
  change_net(file, state, o);
  return load_without_data(std::move(file), state, o.input_shape, o.batch);
}

void add_log_format_option(CLI::App& command, std::string& name) {
  command
      .add_option("--log-format", name,
                  "Print Caffe's lines: caffe (as its logger writes them, for scripts that read its logs) or "
                  "plain (the text alone); default: caffe in files and pipes, progress on a terminal")
      ->check(CLI::IsMember({"caffe", "plain"}));
}

void print_passed_over(const std::string& file, const PassedOver& layers) {
  for (const std::string& layer : layers.of_network)
    log_line(our_line, fmt::format("  layer '{}' is not in {}: it keeps the values it had", layer, file));
  for (const std::string& layer : layers.of_file)
    log_line(our_line, fmt::format("  layer '{}' of {} is not in the net", layer, file));
}

void print_kernels(const Executor& executor, const std::string& title) {
  fmt::print(stderr, "Kernels of {}:\n", title);
  for (const std::string& line : executor.kernel_report()) fmt::print(stderr, "  {}\n", line);
}

void add_inputs(CommandFiles& files, const ModelOptions& model) { files.reads(model.model); }

void add_inputs(CommandFiles& files, const MachineOptions& machine) {
  if (machine.cut.strategy.ends_with(".json")) files.reads(machine.cut.strategy);
}

}  // namespace cortado
