#pragma once

#include <span>
#include <vector>

#include "cortado/base/units.h"
#include "cortado/cost/exchange_volume.h"
#include "cortado/layers/task.h"

namespace cortado {

// Of one device's task; passes that it does not have take no time. bound: it takes at least that long
// (CostModel::measure tells how long).
struct TaskTime {
  Seconds forward, backward_weights, backward;
  bool bound = false;
  Seconds total() const { return forward + backward_weights + backward; }
};

enum class Collective { allreduce, reduce_scatter, allgather };

// How long things take: all that a planner or simulator asks of a machine. Alone: nothing else runs or sends.
class CostModel {
 public:
  virtual ~CostModel() = default;

  // Whether several threads may ask at a time. exchange() they always may.
  virtual bool concurrent() const { return false; }

  // A task (a layer, or a chain that one kernel runs) on a device.
  virtual TaskTime task(const Task& task, int device) = 0;

  // The same, never a bound: where it is not known, it is measured. May lower bounds that were given before,
  // where it finds less than one of them.
  virtual TaskTime measure(const Task& task, int device) { return this->task(task, device); }

  // The update of that much of the parameters by the solver, on a device.
  virtual Seconds update(Bytes parameters, int device) = 0;

  // A tensor that moves from one layout to another, or its gradient back.
  virtual Seconds exchange(const ExchangeVolume& volume) = 0;

  // Groups of ranks that do a collective at the same time, each over `bytes`: what every member has before an
  // allreduce or reduce-scatter, and after an allreduce or allgather.
  virtual Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) = 0;
};

}  // namespace cortado
