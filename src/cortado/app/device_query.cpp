#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/cli/help_lines.h"
#include "cortado/comm/processors.h"
#include "cortado/device/cuda.h"
#include "cortado/measure/host_facts.h"

namespace cortado {
namespace {

void run_device_query(const DeviceWords& words) {
  devices_of(words, as_option);  // throws where there are none such
  const std::string instead = cpu_instead_notice(words, as_option), no_gpus = device::no_gpus_because();
  if (!instead.empty()) fmt::print("{}\n", instead);
  const HostFacts facts = host_facts();
  const Topology usable = Topology::of_process();
  auto line = [](const char* name, const std::string& value) { fmt::print("{:<26}{}\n", name, value); };
  if (!no_gpus.empty()) line("GPUs:", "none: " + no_gpus);
  for (int i = 0; const device::Gpu& gpu : device::gpus())
    line(fmt::format("gpu:{}:", i++).c_str(), device::text(gpu));
  line("Processor:", facts.processor.empty() ? "not known" : facts.processor);
  line("Sockets, cores, threads:", fmt::format("{}, {}, {}", facts.sockets, facts.cores, facts.threads));
  line("Used by default:",
       fmt::format("{} threads, one a core that this process may use", usable.share(0, 1).threads));
  line("Instruction sets:", fmt::format("{}", fmt::join(facts.instruction_sets, " ")));
  line("Caches:", caches_text(facts.caches));
  line("Memory it may use:", fmt::format("{:.1f} GiB", static_cast<double>(facts.memory.count) / 0x1p30));
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
