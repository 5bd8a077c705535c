#pragma once

#include <span>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/cost/exchange_volume.h"
#include "cortado/layers/task.h"
#include "cortado/parallel/collectives.h"

namespace cortado {

// The time of one device's task; passes that it does not have take no time. bound: it takes at least that
// long (CostModel::measure finds out how long).
struct TaskTime {
  Seconds forward, backward_weights, backward;
  bool bound = false;
  Seconds total() const { return forward + backward_weights + backward; }
};

// How long things take that run alone: all that a planner or simulator asks about a machine.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // Whether several threads may ask at a time. They may always ask exchange().
  virtual bool concurrent() const { return false; }

  // A task (a layer, or a chain that one kernel runs) on a device.
  virtual TaskTime task(const Task& task, int device) = 0;

  // The same, but never a bound: a time that is not known is measured. A measurement below its bound may
  // lower bounds that were given before.
  virtual TaskTime measure(const Task& task, int device) { return this->task(task, device); }

  // The solver's update of that many bytes of parameters, on a device.
  virtual Seconds update(Bytes parameters, int device) = 0;

  // A tensor that moves from one layout to another, or its gradient back.
  virtual Seconds exchange(const ExchangeVolume& volume) = 0;

  // Groups of ranks that do a collective at the same time, each over `bytes`: what every member has before an
  // allreduce or reduce-scatter, and after an allreduce or allgather.
  virtual Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) = 0;
};

}  // namespace cortado
