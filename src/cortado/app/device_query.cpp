#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/cli/help_lines.h"
#include "cortado/measure/host_facts.h"

namespace cortado {
namespace {

void run_device_query(const JobOptions& o) {
  const std::string no_gpu = gpu_notice(o);
  if (!no_gpu.empty()) fmt::print("{}\n", no_gpu);
  fmt::print("{:<26}{}\n{:<26}{}\n{}", "GPUs:", "none: this version has no GPU support", "Device:", "CPU",
             facts_text(host_facts()));
}

}  // namespace

Command add_device_query_command(CLI::App& app) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* command = app.add_subcommand("device_query", "Tell what there is to compute on");
  command->alias("device-query");
  add_gpu_options(*command, *options);
  command->footer(help_footer({"cortado device_query"}));
  return {command, [options] { run_device_query(*options); }};
}

}  // namespace cortado
