#include "cortado/cost/analytic.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace cortado {
namespace {

// Bytes that an update reads and writes, for each byte of parameters: value, gradient and history read, value
// and history written.
constexpr double update_traffic = 5;

double input_bytes(const Task& task) {
  Bytes bytes;
  for (size_t i = 0; i < task.input_boxes.size(); ++i)
    bytes += bytes_of(task.input_boxes[i].shape(), task.input_type(static_cast<int>(i)));
  return static_cast<double>(bytes.count);
}

double output_bytes(const Task& task) {
  Bytes bytes;
  for (size_t k = 0; k < task.output_boxes.size(); ++k)
    bytes += bytes_of(task.output_boxes[k].shape(), task.output_type(static_cast<int>(k)));
  return static_cast<double>(bytes.count);
}

double parameter_bytes(const Task& task) {
  Bytes bytes;
  const int count = static_cast<int>(task.layer().parameters(task.inputs).size());
  for (int p = 0; p < count; ++p) bytes += bytes_of(task.parameter_box(0, p).shape(), task.parameter_type);
  return static_cast<double>(bytes.count);
}

// What a task has to do.
struct Work {
  TaskKind kind;
  double flops, in, out, weights;  // of the forward pass; bytes of inputs, outputs, parameters

  // Reads and writes of memory in a pass. Backward passes read inputs or weights and the gradient of the
  // output; layers bound by memory read what they read and wrote forward, too.
  double memory_traffic(TaskPass pass) const {
    if (pass == TaskPass::backward && kind == TaskKind::memory) return 2 * in + out + weights;
    return in + out + weights;
  }
};

Work work_of(const Task& task) {
  const TaskKind kind = kind_of(task);
  return {kind, kind == TaskKind::memory ? 0 : forward_flops(task).count, input_bytes(task),
          output_bytes(task), parameter_bytes(task)};
}

Seconds times(Seconds seconds, double factor) { return {seconds.count * factor}; }

}  // namespace

TaskKind kind_of(const Task& task) {
  switch (task.layer().products()) {
    case Products::inner_product:
      return TaskKind::inner_product;
    case Products::convolution:
      return TaskKind::convolution;
    case Products::none:
      break;
  }
  return TaskKind::memory;
}

ElementType product_type(const Task& task) {
  return task.all_f32() || task.f32_products ? ElementType::f32 : ElementType::bf16;
}

std::vector<std::string> rate_warnings(const DeviceGraph& machine, Precision precision) {
  if (precision != Precision::bf16) return {};
  for (int device = 0; device < machine.devices(); ++device) {
    if (machine.device(device).bf16_peak.per_second == 0)
      return {fmt::format(
          "machine '{}' says no rate of bf16; products count at the rate of f32. \"gflops\": {{\"f32\": ..., "
          "\"bf16\": ...}} says both",
          machine.machine().name)};
  }
  return {};
}

Flops forward_flops(const Task& task) {
  const Shape domain = task.layer().domain(task.inputs, task.outputs);
  double share = static_cast<double>(task.domain_box.shape().size()) / static_cast<double>(domain.size());
  if (task.layer().splits_backward() && task.inputs[0].rank() > 1) {
    // Less than the channels that the outputs depend on: a part of the summed dimension.
    const Box whole = task.layer().input_box(task.inputs, 0, 0, task.domain_box);
    share *= static_cast<double>(task.input_boxes[0][1].size()) / static_cast<double>(whole[1].size());
  }
  return {task.layer().forward_flops(task.inputs, task.outputs).count * share};
}

// Rings of groups that run at the same time, as far as their time depends on them.
struct AnalyticCosts::Ring {
  double members = 0, latency = 0, per_byte = 0;  // of the slowest link
  bool operator==(const Ring&) const = default;
};

// Rings by their groups: planners ask about the same groups over and over, of thousands of ranks.
struct AnalyticCosts::KnownRings {
  std::mutex mutex;
  std::unordered_map<size_t, std::vector<std::pair<std::vector<int>, std::vector<Ring>>>> of_hash;
};

AnalyticCosts::AnalyticCosts(DeviceGraph machine)
    : machine_(std::move(machine)), known_(std::make_shared<KnownRings>()) {
  const int devices = machine_.devices();
  auto slower = [](Link& link, const Link& other, bool& known) {
    if (!known) link = other;
    link.latency = std::max(link.latency, other.latency);
    if (other.bandwidth < link.bandwidth) link.bandwidth = other.bandwidth;
    known = true;
  };
  bool inside = false, across = false;
  const bool by_pairs = !machine_.machine().pairs.empty();
  std::vector<int> first;  // device of each node
  for (int from = 0; from < devices; ++from) {
    if (from == 0 || machine_.crosses_nodes(from - 1, from)) first.push_back(from);
    const int begin = by_pairs ? 0 : first.back();
    for (int to = begin; to < devices && (by_pairs || !machine_.crosses_nodes(from, to)); ++to) {
      if (from == to) continue;
      const bool crosses = machine_.crosses_nodes(from, to);
      slower(crosses ? across_ : inside_, machine_.link(from, to), crosses ? across : inside);
    }
  }
  // Without pairs the devices of two nodes have one link; the slowest has the slowest interface at an end.
  for (size_t node = 1; node < first.size() && !by_pairs; ++node)
    slower(across_, machine_.link(first[node - 1], first[node]), across);
  for (int node = 0; node < machine_.nodes(); ++node) {
    const Bandwidth nic = machine_.nic(node);
    if (node == 0 || nic < nic_) nic_ = nic;
    const Bandwidth bus = machine_.bus(node);
    if (bus.bytes_per_second > 0 && (bus_.bytes_per_second == 0 || bus < bus_)) bus_ = bus;
  }
}

TaskTime AnalyticCosts::task(const Task& task, int device) {
  const Device& spec = machine_.device(device);
  const Calibration& calibration = machine_.calibration();
  const Work work = work_of(task);
  const FlopRate peak = spec.peak_of(product_type(task));
  auto time_of = [&](TaskPass pass) {
    const double share = calibration.efficiency.at(work.kind, pass);
    const double of_memory = calibration.efficiency.at(TaskKind::memory, pass);
    const double computing = work.kind == TaskKind::memory ? 0 : work.flops / (peak.per_second * share);
    const double moving = work.memory_traffic(pass) / (spec.memory_bandwidth.bytes_per_second * of_memory);
    const Seconds seconds = {std::max(computing, moving) + spec.task_overhead.count};
    return times(seconds, calibration.correction.at(work.kind, pass));
  };
  TaskTime time{.forward = time_of(TaskPass::forward), .backward_weights = {}, .backward = {}};
  const bool weights = any_wanted(task.parameter_gradients), inputs = any_wanted(task.input_gradients);
  const bool splits = task.layer().splits_backward();
  if (weights && splits) time.backward_weights = time_of(TaskPass::backward_weights);
  if (inputs || (weights && !splits)) time.backward = time_of(TaskPass::backward);
  return time;
}

Seconds AnalyticCosts::update(Bytes parameters, int device) {
  const double traffic = update_traffic * static_cast<double>(parameters.count);
  const double share = machine_.calibration().efficiency.at(TaskKind::memory, TaskPass::forward);
  return {traffic / (machine_.device(device).memory_bandwidth.bytes_per_second * share)};
}

Seconds AnalyticCosts::exchange(const ExchangeVolume& volume) {
  if (volume.nothing()) return {};
  double seconds = 0;
  if (volume.inside > 0) seconds = volume.inside / inside_.bandwidth.bytes_per_second;
  if (bus_.bytes_per_second > 0) seconds = std::max(seconds, volume.node_inside / bus_.bytes_per_second);
  if (volume.across > 0) {
    double across = volume.across / across_.bandwidth.bytes_per_second;
    if (nic_.bytes_per_second > 0) across = std::max(across, volume.node_across / nic_.bytes_per_second);
    seconds = std::max(seconds, across);
  }
  const double latency = volume.across > 0 ? across_.latency.count : inside_.latency.count;
  return times({seconds + volume.messages * latency}, machine_.calibration().exchange_correction);
}

std::vector<AnalyticCosts::Ring> AnalyticCosts::make_rings(std::span<const std::vector<int>> groups) const {
  const auto nodes = static_cast<size_t>(machine_.nodes());
  std::vector<int> leaving(nodes), staying(nodes);  // links of rings that leave a node, and within it
  auto each_link = [&](const std::vector<int>& group, auto&& work) {
    if (group.size() < 2) return;
    for (size_t i = 0; i < group.size(); ++i) work(group[i], group[(i + 1) % group.size()]);
  };
  for (const auto& group : groups) {
    each_link(group, [&](int from, int to) {
      ++(machine_.crosses_nodes(from, to) ? leaving : staying)[static_cast<size_t>(machine_.node_of(from))];
    });
  }
  std::vector<Ring> rings;
  for (const auto& group : groups) {
    if (group.size() < 2) continue;
    Ring ring{.members = static_cast<double>(group.size())};
    each_link(group, [&](int from, int to) {
      const Link link = machine_.link(from, to);
      const int node = machine_.node_of(from);
      const bool crosses = machine_.crosses_nodes(from, to);
      const Bandwidth shared = crosses ? machine_.nic(node) : machine_.bus(node);
      double bandwidth = link.bandwidth.bytes_per_second;
      if (shared.bytes_per_second > 0) {
        const int links = (crosses ? leaving : staying)[static_cast<size_t>(node)];
        bandwidth = std::min(bandwidth, shared.bytes_per_second / links);
      }
      ring.latency = std::max(ring.latency, link.latency.count);
      ring.per_byte = std::max(ring.per_byte, 1 / bandwidth);
    });
    if (std::ranges::find(rings, ring) == rings.end()) rings.push_back(ring);
  }
  return rings;
}

std::vector<AnalyticCosts::Ring> AnalyticCosts::rings_of(std::span<const std::vector<int>> groups) const {
  std::vector<int> flat;
  size_t hash = 0;
  for (const auto& group : groups) {
    flat.push_back(-1);
    flat.insert(flat.end(), group.begin(), group.end());
  }
  for (int rank : flat) hash = (hash ^ static_cast<size_t>(rank)) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
  {
    const std::scoped_lock lock(known_->mutex);
    for (const auto& [of, rings] : known_->of_hash[hash])
      if (of == flat) return rings;
  }
  std::vector<Ring> rings = make_rings(groups);
  const std::scoped_lock lock(known_->mutex);
  known_->of_hash[hash].emplace_back(std::move(flat), rings);
  return rings;
}

// Every host of a group serves an equal share of its bytes, and one device after the other.
Seconds AnalyticCosts::served(std::span<const std::vector<int>> groups, Bytes bytes) const {
  const auto nodes = static_cast<size_t>(machine_.nodes());
  const double each = static_cast<double>(bytes.count);
  // Of each node: its devices that send, those of other nodes that send to it, and its bytes to other hosts.
  std::vector<double> devices(nodes), others(nodes), leaving(nodes);
  std::vector<int> of_group(nodes);
  for (const auto& group : groups) {
    if (group.size() < 2) continue;
    std::ranges::fill(of_group, 0);
    for (int member : group) ++of_group[static_cast<size_t>(machine_.node_of(member))];
    const auto hosts = static_cast<double>(nodes - static_cast<size_t>(std::ranges::count(of_group, 0)));
    for (size_t node = 0; node < nodes; ++node) {
      devices[node] += of_group[node];
      if (of_group[node] > 0) others[node] += static_cast<double>(group.size()) - of_group[node];
      leaving[node] += each * of_group[node] * (1 - 1 / hosts);
    }
  }
  double near = 0, far = 0;
  for (size_t node = 0; node < nodes; ++node) {
    const int index = static_cast<int>(node);
    if (devices[node] > 0 && machine_.devices_sharing_nic(index) > 1) {
      const double host = machine_.host(index).bytes_per_second;
      const double bound = host > 0 ? each * devices[node] / host : 0;
      near = std::max(near, devices[node] * inside_.latency.count +
                                std::max(each / inside_.bandwidth.bytes_per_second, bound));
    }
    if (leaving[node] > 0)
      far = std::max(
          far, others[node] * across_.latency.count + leaving[node] / machine_.nic(index).bytes_per_second);
  }
  return {near + far};
}

Seconds AnalyticCosts::collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) {
  if (is_served(kind)) return times(served(groups, bytes), machine_.calibration().collective_correction);
  const double rounds = rounds_of(kind), all = static_cast<double>(bytes.count);
  double slowest = 0;
  for (const auto& [members, latency, per_byte] : rings_of(groups)) {
    const double ring = rounds * (members - 1) * (latency + all / members * per_byte);
    const double tree = rounds * std::ceil(std::log2(members)) * (latency + all * per_byte);
    slowest = std::max(slowest, std::min(ring, tree));
  }
  return times({slowest}, machine_.calibration().collective_correction);
}

}  // namespace cortado
