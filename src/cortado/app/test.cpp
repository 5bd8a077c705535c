#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/net/net_files.h"
#include "cortado/net/read_net.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/terminal/training_lines.h"
#include "cortado/train/gather.h"
#include "cortado/train/score.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

struct TestArguments {
  ModelOptions model;
  JobOptions job;
  std::string weights, json, log_format;
  int iterations = 50;
  int reader_threads = 1;
};

void run_test(TestArguments& a) {
  set_log_format(a.log_format);
  std::unique_ptr<Communicator> job = join_job(a.job);
  NetFile file = read_net(a.model.model);
  CommandFiles files;
  add_inputs(files, a.model);
  add_inputs(files, a.job);
  files.reads(split_list(a.weights));
  files.writes("--json", a.json);
  print_warnings(file.warnings);
  print_warnings(precision_warnings(a.model.precision));
  const caffe::NetState state = net_state_of(a.model, file, Phase::test);
  change_net(file, state, a.model);
  add_files(files, file);
  check_command_files(files, *job);
  check_same_start(a.job.cut, *job,
                   {fact_of("net", file, state), {"--iterations", std::to_string(a.iterations)}});
  DataNetwork data(file, state,
                   {.seed = 1, .reader_threads = a.reader_threads, .learns = false, .notice = print_notice});
  ParameterStore parameters(*a.job.cut.device);
  Compiled compiled =
      compile(data.network(), compile_options(a.job.cut, data.network(), *job, printed_messages()));
  std::map<std::string, BatchSource> sources = data.sources(compiled.program.samples());
  Executor executor(data.network(), std::move(compiled), parameters, std::move(sources),
                    {.communicator = job.get()});
  const bool first = job->rank() == 0;
  if (a.job.verbose && first) print_kernels(executor, "the net");
  for (const std::string& path : split_list(a.weights))
    print_passed_over(path, load_weights(path, executor, parameters));

  log_line("caffe.cpp:281", "Use CPU.");
  log_line("caffe.cpp:285", fmt::format("Running for {} iterations.", a.iterations));
  const Score result = score(executor, a.iterations, [](int batch, const std::vector<OutputValue>& values) {
    for (const OutputValue& o : values)
      log_line("caffe.cpp:308", fmt::format("Batch {}, {} = {:.6g}", batch, o.name, o.value));
  });
  const double speed = static_cast<double>(data.batch_size()) * a.iterations / result.seconds;
  log_line("caffe.cpp:313", fmt::format("Loss: {:.6g}", result.loss));
  for (const OutputValue& mean : result.outputs) log_line("caffe.cpp:325", output_text(mean));
  log_line(our_line, fmt::format("{:.1f} images/s", speed));
  if (const int64_t skipped = count_over_ranks(job.get(), data.skipped_records()))
    log_line(our_line, fmt::format("Broken records skipped: {}", skipped));
  if (!a.json.empty() && first) write_file_atomically(a.json, score_json(result, a.iterations, speed));
}

}  // namespace

Command add_test_command(CLI::App& app) {
  auto a = std::make_shared<TestArguments>();
  CLI::App* command = app.add_subcommand("test", "Score a model on its test data");
  add_model_options(*command, a->model);
  command->add_option("--weights", a->weights, "Weights: .caffemodel, .h5 or .safetensors; several as a,b")
      ->required();
  add_number(*command, "--iterations", a->iterations, 1, most_iterations, "Batches");
  command->add_option("--json", a->json, "Write the means as JSON");
  add_number(*command, "--reader-threads", a->reader_threads, 1, most_threads,
             "Decoding threads of each source layer");
  add_log_format_option(*command, a->log_format);
  add_job_options(*command, a->job);
  command->footer(
      help_footer({"cortado test --model examples/shapes/train_val.prototxt --weights "
                   "demo/shapes_iter_2000.caffemodel --iterations 40"}));
  refuse_empty_names(*command, {"--model", "--weights", "--json"});
  return {command, [a] { run_test(*a); }};
}

}  // namespace cortado
