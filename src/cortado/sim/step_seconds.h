#pragma once

#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/program/program.h"

namespace cortado {

// Seconds that the steps of one rank's program take by a cost model. Messages and collectives count as if
// nobody else sent. Loads, and steps of which the model knows nothing, take no time. All that it is given
// must outlive it. Where `costs` measures, all ranks make it for the same programs in the same order.
class StepSeconds {
 public:
  StepSeconds(const Program& program, CostModel& costs, const std::vector<int>& node_of_rank);

  Seconds of(const Step& step);
  IndexedVector<StepIndex, Seconds> of_all();

  // The collective of a step with a group. `bytes`: what each member has before an allreduce or
  // reduce-scatter, and after an allgather.
  struct GroupStep {
    Collective kind;
    Bytes bytes;
  };
  GroupStep group_step(const Step& step) const;

 private:
  Seconds computing(const steps::Compute& compute) const;
  Seconds messages(const Step& step);
  Seconds together(const Step& step);
  Bytes chunks_of(const Step& exchange) const;
  Bytes slice_of(const Step& step) const;
  Bytes share_of(const Step& update) const;

  const Program& program_;
  CostModel& costs_;
  const std::vector<int>& node_of_rank_;
  IndexedVector<WorkIndex, TaskTime> times_;
};

}  // namespace cortado
