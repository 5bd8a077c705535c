#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/report/table.h"
#include "cortado/train/comparison_report.h"
#include "cortado/train/gather.h"
#include "cortado/train/resident_data.h"

namespace cortado {
namespace {

struct VerifyArguments {
  ModelOptions model;
  JobOptions job;
  std::string json;
  int iterations = 3;
  double rate = 1e-3;
};

void run_verify(VerifyArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.job);
  CommandFiles files;
  add_inputs(files, a.model);
  add_inputs(files, a.job);
  files.writes("--json", a.json);
  check_command_files(files, *job);
  if (a.model.precision != Precision::f32)
    throw UserError("--precision bf16: a cut rounds otherwise, which hides a fault; verify in f32");
  LoadedNetwork loaded = load_without_data(a.model, Phase::train);
  const ComparedTraining training{.network = loaded.network,
                                  .cut = compile_options(a.job.cut, loaded.network, *job, printed_messages()),
                                  .job = *job,
                                  .device = *a.job.cut.device,
                                  .data = drawn_anew(loaded.network),
                                  .iterations = a.iterations,
                                  .rate = a.rate};
  const CutComparison comparison = compare_cut_training(training);
  if (job->rank() > 0) return;
  check_finite(comparison, a.rate);
  const std::string strategy = strategy_name(a.job.cut, job->size()),
                    difference = describe_difference(comparison);
  fmt::print("{}", comparison_text(comparison));
  if (!a.json.empty()) write_file_atomically(a.json, comparison_json(comparison, strategy, job->size()));
  if (!difference.empty()) throw InternalError(difference);
  fmt::print("{} under strategy {} on {}: the same as uncut\n", loaded.network.name(), strategy,
             counted(job->size(), "rank"));
}

}  // namespace

Command add_verify_command(CLI::App& app) {
  auto a = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Train a model cut by a strategy and uncut, on the same random data, and compare, in f32");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  add_number(*command, "--iterations", a->iterations, 1, most_iterations, "Iterations to train");
  add_number(*command, "--rate", a->rate, 1e-12, 1e6, "Learning rate; momentum is 0.9");
  command->add_option("--json", a->json, "Write the differences as JSON");
  add_job_options(*command, a->job);
  command->footer(
      help_footer({"cortado verify --model models/lenet/train_val.prototxt --input-shape 1x28x28 --ranks 2 "
                   "--strategy model"}));
  refuse_empty_names(*command, {"--model", "--json"});
  return {command, [a] { run_verify(*a); }};
}

}  // namespace cortado
