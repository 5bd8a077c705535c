#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/machine/file.h"
#include "cortado/measure/job_machine.h"
#include "cortado/report/machine_report.h"
#include "cortado/train/gather.h"

namespace cortado {
namespace {

struct MachineArguments {
  JobOptions options;
  std::string out;
  double seconds = 10;
  bool json = false;
};

void run_machine(MachineArguments& a) {
  std::unique_ptr<Communicator> job = join_job(a.options);
  CommandFiles files;
  files.writes("--out", a.out);
  check_command_files(files, *job);
  check_same_start(a.options.cut, *job, {{"--seconds", std::to_string(a.seconds)}});
  const DeviceGraph graph(measure_machine(*job, a.seconds, *a.options.cut.device));
  if (job->rank() > 0) return;
  const std::string text = machine_text(graph);
  if (!a.out.empty()) write_file_atomically(a.out, text);
  if (a.json) {
    fmt::print("{}", text);
    return;
  }
  fmt::print("{}", machine_report(graph));
  if (!a.out.empty()) fmt::print("written to {}\n", a.out);
}

}  // namespace

Command add_machine_command(CLI::App& app) {
  auto a = std::make_shared<MachineArguments>();
  CLI::App* command =
      app.add_subcommand("machine", "Measure this machine or, on ranks, this cluster; write its file");
  command->add_option("--out", a->out, "Write the machine file (JSON, docs/reference/machines.md)");
  add_number(*command, "--seconds", a->seconds, 0.1, 3600, "About how long to measure");
  command->add_flag("--json", a->json, "Print the machine file in place of tables");
  add_rank_options(*command, a->options);
  add_device_options(*command, a->options.devices);
  command->footer(help_footer({"cortado machine --ranks 2 --out here.json"}));
  refuse_empty_names(*command, {"--out"});
  return {command, [a] { run_machine(*a); }};
}

}  // namespace cortado
