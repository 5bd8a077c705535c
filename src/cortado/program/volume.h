#pragma once

#include "cortado/base/units.h"
#include "cortado/program/movement.h"
#include "cortado/program/program.h"

namespace cortado {

// Payload bytes that one rank sends and receives.
struct Volume {
  Bytes sent, received;
  Volume& operator+=(const Volume& other);
  bool operator==(const Volume&) const = default;
};

// What `rank` sends and receives in its part of a movement.
Volume volume_of(const Movement& movement, int rank);

// What one rank moves in an iteration. Collectives go round a ring: with V the bytes of all chunks and g
// ranks, an allgather and a reduce-scatter send V less one chunk, (g-1)/g V where chunks are equal, and an
// allreduce both, 2 (g-1)/g V (docs/explanation/movement.md).
struct Volumes {
  Volume messages;    // point-to-point: halos, moves between unlike cuts
  Volume gathers;     // allgathers and broadcasts of tensors
  Volume scatters;    // reduce-scatters and reductions of tensors
  Volume statistics;  // sums within layers
  Volume gradients;   // sums of parameters' gradients, and parameters back from their owners
  Volume total() const;
};

// Counts what the program of a rank moves. Parameters count as their slices, without the padding that a
// kernel's order may add.
Volumes volumes_of(const Program& program);

}  // namespace cortado
