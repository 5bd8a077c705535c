#include "cortado/program/volume.h"

#include <algorithm>
#include <span>

namespace cortado {
namespace {

// Chunks of one ring, in bytes: all of them, this rank's, and those of the ranks before and after it.
struct Ring {
  Bytes all, before, own, after;

  Bytes all_but(Bytes chunk) const { return {all.count - chunk.count}; }
  // A chunk is handed on from its owner to the rank before the owner.
  Volume gather() const { return {all_but(after), all_but(own)}; }
  // A chunk is summed on its way from the rank after its owner to the owner.
  Volume scatter() const { return {all_but(own), all_but(before)}; }
};

// `chunk`: bytes of the chunk of a member.
template <typename Chunk>
Ring ring_of(const std::vector<int>& group, int rank, Bytes all, Chunk&& chunk) {
  const auto members = static_cast<int>(group.size());
  const auto member = static_cast<int>(std::ranges::find(group, rank) - group.begin());
  return {all, chunk((member + members - 1) % members), chunk(member), chunk((member + 1) % members)};
}

Ring ring_of(const Movement& movement, int rank) {
  const auto bytes = [&](const std::optional<Box>& chunk) {
    return chunk ? bytes_of(chunk->shape(), movement.type()) : Bytes{};
  };
  Bytes all;
  for (const auto& chunk : movement.chunks) all += bytes(chunk);
  return ring_of(movement.group, rank, all,
                 [&](int member) { return bytes(movement.chunks[static_cast<size_t>(member)]); });
}

// Chunk i of an allreduce of `count` elements ends at count * (i + 1) / members.
Ring sum_ring(const std::vector<int>& group, int rank, int64_t count, ElementType type) {
  const auto members = std::ssize(group);
  return ring_of(group, rank, bytes_of(count, type),
                 [&](int64_t i) { return bytes_of(count * (i + 1) / members - count * i / members, type); });
}

// The same where chunks are the shares that ranks own.
Ring share_ring(const std::vector<int>& group, int rank, int64_t count, ElementType type) {
  const int members = static_cast<int>(group.size());
  return ring_of(group, rank, bytes_of(count, type),
                 [&](int i) { return bytes_of(block_of(count, members, i).size(), type); });
}

Volume messages_of(const Movement& movement) {
  Volume volume;
  for (const auto& part : movement.sends) volume.sent += bytes_of(part.box.shape(), movement.type());
  for (const auto& part : movement.receives) volume.received += bytes_of(part.box.shape(), movement.type());
  return volume;
}

Volume volume_of(Collective collective, const Ring& ring) {
  if (is_served(collective)) return {ring.all, ring.all};  // the rank's own, and those of its server
  Volume volume;
  if (collective != Collective::allgather) volume += ring.scatter();
  if (collective != Collective::reduce_scatter) volume += ring.gather();
  return volume;
}

void add_exchange(const Program& program, const Movement& movement, Volumes& volumes) {
  const Volume volume = volume_of(movement, program.rank);
  if (movement.group.empty())
    volumes.messages += volume;
  else
    (movement.sums ? volumes.scatters : volumes.gathers) += volume;
}

Volume statistics_volume(const Program& program, const steps::SumStatistics& sum) {
  const ElementType type = program.buffers[sum.sums.buffer].type;
  const Ring ring = sum_ring(sum.group, program.rank, elements_in({sum.sums.bytes.size()}, type), type);
  return volume_of(Collective::allreduce, ring);
}

int64_t elements_of(const Program& program, std::span<const ParameterIndex> parameters) {
  int64_t elements = 0;
  for (ParameterIndex parameter : parameters)
    elements += program.placement->slices[parameter][program.rank]->shape().size();
  return elements;
}

// An allreduce is of even chunks; otherwise they are what ranks own. A step's parameters are of one type.
Volume parameters_volume(const Program& program, const Step& step) {
  const Collective collective = program.collective_of(step);
  const auto ring = collective == Collective::allreduce ? sum_ring : share_ring;
  return volume_of(collective, ring(step.group(), program.rank, elements_of(program, step.parameters()),
                                    program.placement->parameter_types[step.parameters().front()]));
}

}  // namespace

Volume& Volume::operator+=(const Volume& other) {
  sent += other.sent;
  received += other.received;
  return *this;
}

Volume volume_of(const Movement& movement, int rank) {
  if (movement.group.empty()) return messages_of(movement);
  const Ring ring = ring_of(movement, rank);
  return movement.sums ? ring.scatter() : ring.gather();
}

Volume Volumes::total() const {
  Volume total;
  for (const Volume& volume : {messages, gathers, scatters, statistics, gradients}) total += volume;
  return total;
}

Volumes volumes_of(const Program& program) {
  Volumes volumes;
  for (const Step& step : program.steps) {
    std::visit(
        Overloaded{
            [&](const steps::Exchange&) { add_exchange(program, program.movement_of(step), volumes); },
            [&](const steps::SumStatistics& sum) { volumes.statistics += statistics_volume(program, sum); },
            [&](const steps::MovesParameters auto&) {
              volumes.gradients += parameters_volume(program, step);
            },
            [](const steps::Local auto&) {}},
        step.action);
  }
  return volumes;
}

}  // namespace cortado
