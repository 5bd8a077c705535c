#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/training_lines.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/train/gather.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

struct TestArguments {
  ModelOptions model;
  MachineOptions machine;
  std::string weights, json;
  int iterations = 50;
  int reader_threads = 1;
};

using Json = nlohmann::ordered_json;

void write_test_json(const TestArguments& a, const std::vector<OutputValue>& outputs, double loss,
                     double seconds, double images_per_second) {
  Json values = Json::array();
  for (const OutputValue& o : outputs) values.push_back({{"name", o.name}, {"value", o.value}});
  Json report{{"iterations", a.iterations},
              {"loss", loss},
              {"outputs", values},
              {"seconds", seconds},
              {"images_per_second", images_per_second}};
  write_file_atomically(a.json, report.dump(2) + "\n");
}

void run_test(const TestArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.machine);
  NetFile file = read_net(a.model.model);
  if (a.model.batch > 0) override_batch(file.net, a.model.batch);
  const caffe::NetState state = net_state_of(a.model, Phase::test);
  check_same_start(a.machine, *job,
                   {fact_of("net", file, state), {"--iterations", std::to_string(a.iterations)}});
  DataNetwork data(file, state, {.seed = 1, .reader_threads = a.reader_threads});
  ParameterStore parameters;
  Executor executor(data.network(), parameters, data.sources(),
                    execution_options(a.machine, *job, data.network()));
  data.restrict_to(executor.samples());
  const bool first = job->rank() == 0;
  if (a.machine.verbose && first) print_kernels(executor, "the net");
  for (const std::string& path : split_list(a.weights))
    print_passed_over(path, load_weights(path, executor, parameters));

  auto start = std::chrono::steady_clock::now();
  std::vector<OutputValue> means;
  double loss = 0;
  for (int batch = 0; batch < a.iterations; ++batch) {
    loss += executor.run(static_cast<uint64_t>(batch)) / a.iterations;
    std::vector<OutputValue> values = output_values(executor);
    if (batch == 0) means.assign(values.size(), {});
    for (size_t i = 0; i < values.size(); ++i) {
      means[i].name = values[i].name;
      means[i].loss_weight = values[i].loss_weight;
      means[i].value += values[i].value / a.iterations;
      fmt::print("Batch {}, {} = {:.6g}\n", batch, values[i].name, values[i].value);
    }
  }
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double speed = static_cast<double>(data.batch_size()) * a.iterations / seconds;
  fmt::print("Loss: {:.6g}\n{}", loss, output_lines("Test", means));
  fmt::print("{:.1f} images/s\n", speed);
  if (const int64_t skipped = count_over_ranks(job.get(), data.skipped_records()))
    fmt::print("Broken records skipped: {}\n", skipped);
  if (!a.json.empty() && first) write_test_json(a, means, loss, seconds, speed);
}

}  // namespace

Command add_test_command(CLI::App& app) {
  auto a = std::make_shared<TestArguments>();
  CLI::App* command = app.add_subcommand("test", "Score a model on its test data");
  add_model_options(*command, a->model);
  command->add_option("--weights", a->weights, "Weights: .caffemodel, .h5 or .safetensors; several as a,b")
      ->required();
  command->add_option("--iterations", a->iterations, "Batches")->check(at_least_one());
  command->add_option("--json", a->json, "Write the means as JSON");
  command->add_option("--reader-threads", a->reader_threads, "Decoding threads of each source layer")
      ->check(at_least_one());
  add_machine_options(*command, a->machine);
  return {command, [a] { run_test(*a); }};
}

}  // namespace cortado
