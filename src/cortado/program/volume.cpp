#include "cortado/program/volume.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace cortado {
namespace {

// Chunks of one ring, in bytes, and the index of this rank in it.
struct Ring {
  std::vector<Bytes> chunks;
  int member = 0;

  Bytes all() const { return std::accumulate(chunks.begin(), chunks.end(), Bytes{}); }
  Bytes chunk(int place) const {
    const int members = static_cast<int>(chunks.size());
    return chunks[static_cast<size_t>((place + members) % members)];
  }
  Bytes all_but(int place) const { return {all().count - chunk(place).count}; }
  // A chunk is handed on from its owner to the rank before the owner.
  Volume gather() const { return {all_but(member + 1), all_but(member)}; }
  // A chunk is summed on its way from the rank after its owner to the owner.
  Volume scatter() const { return {all_but(member), all_but(member - 1)}; }
};

int place_in(const std::vector<int>& group, int rank) {
  return static_cast<int>(std::ranges::find(group, rank) - group.begin());
}

Ring ring_of(const Movement& movement, int rank) {
  Ring ring{.chunks = {}, .member = place_in(movement.group, rank)};
  for (const auto& chunk : movement.chunks)
    ring.chunks.push_back(chunk ? bytes_of(chunk->shape(), movement.type()) : Bytes{});
  return ring;
}

// Chunk i of an allreduce of `count` elements ends at count * (i + 1) / members.
Ring sum_ring(const std::vector<int>& group, int rank, int64_t count, ElementType type) {
  Ring ring{.chunks = {}, .member = place_in(group, rank)};
  const auto members = std::ssize(group);
  for (int64_t i = 0; i < members; ++i)
    ring.chunks.push_back(bytes_of(count * (i + 1) / members - count * i / members, type));
  return ring;
}

// The same where chunks are the shares that ranks own.
Ring share_ring(const std::vector<int>& group, int rank, int64_t count, ElementType type) {
  Ring ring{.chunks = {}, .member = place_in(group, rank)};
  const int members = static_cast<int>(group.size());
  for (int i = 0; i < members; ++i) ring.chunks.push_back(bytes_of(block_of(count, members, i).size(), type));
  return ring;
}

Volume messages_of(const Movement& movement) {
  Volume volume;
  for (const auto& part : movement.sends) volume.sent += bytes_of(part.box.shape(), movement.type());
  for (const auto& part : movement.receives) volume.received += bytes_of(part.box.shape(), movement.type());
  return volume;
}

Volume volume_of(Collective collective, const Ring& ring) {
  if (is_served(collective)) return {ring.all(), ring.all()};  // the rank's own, and those of its server
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
