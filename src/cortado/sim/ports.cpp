#include "cortado/sim/ports.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cortado {
namespace {

// Ports of a node: its network interface there and back, its bus, and its servers.
enum { nic_out, nic_in, bus, servers };

// Loads of one port add up to at most all of it.
std::vector<Flows::Load> merged(const std::vector<Flows::Load>& loads) {
  std::map<int, double> shares;
  for (const Flows::Load& load : loads) shares[load.port] += load.share;
  std::vector<Flows::Load> one_each;
  for (const auto& [port, share] : shares) one_each.push_back({port, std::min(1.0, share)});
  return one_each;
}

// What a member sends on round the ring.
double ring_bytes(Collective kind, std::span<const int> group, Bytes bytes) {
  const double members = static_cast<double>(group.size());
  return rounds_of(kind) * (members - 1) / members * static_cast<double>(bytes.count);
}

}  // namespace

// What one message alone gets.
Bandwidth Ports::rate(int from, int to) const {
  const bool across = machine_.crosses_nodes(from, to);
  Bandwidth least = machine_.link(from, to).bandwidth;
  for (int node : {machine_.node_of(from), machine_.node_of(to)}) {
    const Bandwidth shared = across ? machine_.nic(node) : machine_.bus(node);
    if (shared.bytes_per_second > 0) least = std::min(least, shared);
  }
  return least;
}

void Ports::add(std::vector<Flows::Load>& loads, int from, int to, Shares shares) const {
  const bool across = machine_.crosses_nodes(from, to);
  const double rate = this->rate(from, to).bytes_per_second;
  const auto use = [&](int device, double share, int port, Bandwidth whole) {
    if (share > 0 && whole.bytes_per_second > 0 && device < blocks_.different())
      loads.push_back({port, share * rate / whole.bytes_per_second});
  };
  const Bandwidth link = machine_.link(from, to).bandwidth;
  use(from, shares.out, device_port(from, across, out), link);
  use(to, shares.in, device_port(to, across, in), link);
  const int sender = machine_.node_of(from), receiver = machine_.node_of(to);
  if (across) {
    use(from, shares.out, node_port(sender, nic_out), machine_.nic(sender));
    use(to, shares.in, node_port(receiver, nic_in), machine_.nic(receiver));
  } else {
    use(from, shares.out, node_port(sender, bus), machine_.bus(sender));
  }
}

int Ports::stands_for(int from, int to, int end) const {
  return blocks_.same_block(from, to) || blocks_.stands_for(end) > 1
             ? 1
             : blocks_.stands_for(end == from ? to : from);
}

std::vector<Flows::Load> Ports::message(int from, int to) const {
  std::vector<Flows::Load> loads;
  const auto at = [&](int end) { return static_cast<double>(stands_for(from, to, end)); };
  add(loads, from, to, {at(from), at(to)});
  return loads;
}

Seconds Ports::message_seconds(int from, int to, Bytes bytes) const {
  const Seconds alone = machine_.link(from, to).latency + bytes / rate(from, to);
  return {alone.count * machine_.calibration().exchange_correction};
}

std::vector<Flows::Load> Ports::collective(Collective kind, std::span<const int> group, Bytes bytes,
                                           Seconds alone) const {
  if (alone.count <= 0) return {};
  const double sent = ring_bytes(kind, group, bytes) * machine_.calibration().collective_correction;
  std::vector<Flows::Load> loads;
  for (size_t i = 0; i < group.size() && is_served(kind); ++i)
    if (group[i] < blocks_.different()) loads.push_back({node_port(machine_.node_of(group[i]), servers), 1});
  for (size_t i = 0; i < group.size() && !is_served(kind); ++i) {
    const int from = group[i], to = group[(i + 1) % group.size()];
    const double share = std::min(1.0, sent / rate(from, to).bytes_per_second / alone.count);
    add(loads, from, to, {share, share});
  }
  return merged(loads);
}

Seconds Ports::wait(int from, int to) const {
  return machine_.crosses_nodes(from, to) ? machine_.calibration().busy_link : Seconds{};
}

// MPI's sums of few values take a round for each doubling of the members.
Seconds Ports::wait(std::span<const int> group) const {
  const double rounds = std::ceil(std::log2(static_cast<double>(group.size())));
  const bool crosses =
      std::ranges::any_of(group, [&](int member) { return machine_.crosses_nodes(group.front(), member); });
  return crosses ? Seconds{rounds * machine_.calibration().busy_link.count} : Seconds{};
}

Seconds Ports::message_overhead(int from, int to, Bytes bytes) const {
  const MessageOverhead& overhead = machine_.calibration().message_overhead;
  return {static_cast<double>(bytes.count) *
          (machine_.crosses_nodes(from, to) ? overhead.network : overhead.node)};
}

Seconds Ports::collective_overhead(Collective kind, std::span<const int> group, Bytes bytes, int rank) const {
  if (machine_.calibration().message_overhead == MessageOverhead{}) return {};
  const size_t members = group.size();
  const auto at = static_cast<size_t>(std::ranges::lower_bound(group, rank) - group.begin());
  const Bytes sent{static_cast<int64_t>(ring_bytes(kind, group, bytes))};
  return message_overhead(group[(at + members - 1) % members], rank, sent) +
         message_overhead(rank, group[(at + 1) % members], sent);
}

}  // namespace cortado
