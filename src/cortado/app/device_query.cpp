#include <fmt/format.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/cli/help_lines.h"
#include "cortado/comm/links.h"
#include "cortado/device/cuda.h"
#include "cortado/kernels/gpu_libraries.h"
#include "cortado/measure/host_facts.h"

namespace cortado {
namespace {

void run_device_query(const DeviceWords& words) {
  devices_of(words, as_option);  // throws where there are none such
  const std::string instead = cpu_instead_notice(words, as_option), no_gpus = device::no_gpus_because();
  if (!instead.empty()) fmt::print("{}\n", instead);
  if (!no_gpus.empty()) fmt::print("{:<26}none: {}\n", "GPUs:", no_gpus);
  for (int i = 0; const device::Gpu& gpu : device::gpus())
    fmt::print("{:<26}{}\n", fmt::format("gpu:{}:", i++), device::text(gpu));
  fmt::print("{:<26}{}\n{:<26}{}\n{:<26}{}\n", "cuDNN:", cudnn_version(), "cuBLASLt:", cublaslt_version(),
             "NCCL:", nccl_version());
  fmt::print("{}", facts_text(host_facts()));
}

}  // namespace

Command add_device_query_command(CLI::App& app) {
  auto options = std::make_shared<DeviceWords>();
  CLI::App* command = app.add_subcommand("device_query", "Tell what there is to compute on");
  command->alias("device-query");
  add_device_options(*command, *options);
  command->footer(help_footer({"cortado device_query"}));
  return {command, [options] { run_device_query(*options); }};
}

}  // namespace cortado
