#include "cortado/api/machine.h"

#include <fmt/format.h>

#include "cortado/api/impl/machine.h"
#include "cortado/base/error.h"
#include "cortado/machine/file.h"

namespace cortado::api {

Machine::Machine(const std::string& name_or_file)
    : impl_(std::make_shared<const Impl>(Impl{load_machine(name_or_file)})) {}

Machine Machine::from_text(const std::string& json, const std::string& name_in_errors) {
  return Machine(std::make_shared<const Impl>(Impl{parse_machine(json, name_in_errors)}));
}

std::vector<std::string> Machine::ready() { return ready_machines(); }

std::string Machine::name() const { return impl_->graph.machine().name; }
int Machine::devices() const { return impl_->graph.devices(); }
int Machine::nodes() const { return impl_->graph.nodes(); }

Machine::Device Machine::device(int index) const {
  const DeviceGraph& graph = impl_->graph;
  if (index < 0 || index >= graph.devices())
    throw UserError(fmt::format("machine '{}' has no device {}; it has {}", name(), index, graph.devices()));
  const cortado::Device& device = graph.device(index);
  return {.name = device.name,
          .node = graph.node_of(index),
          .peak_flops = device.peak.per_second,
          .bf16_peak_flops = device.bf16_peak.per_second,
          .memory_bandwidth = device.memory_bandwidth.bytes_per_second,
          .memory_bytes = device.memory.count};
}

Machine Machine::first(int devices) const {
  return Machine(std::make_shared<const Impl>(Impl{impl_->graph.first(devices)}));
}

std::string Machine::text() const { return machine_text(impl_->graph); }

}  // namespace cortado::api
