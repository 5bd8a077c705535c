#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/program/program.h"

namespace cortado {

// Seconds that the steps of one rank's program take by a cost model. Messages and collectives count as if
// nobody else sent. Loads, and steps of which the model knows nothing, take no time. All that it is given
// must outlive it. Where `costs` measures, all ranks make it for the same programs in the same order.
class StepSeconds {
 public:
  // Seconds of movements that are no collectives, by the operation of the placement, and by which part of the
  // samples: the same for all ranks of a job, which may share them.
  using KnownExchanges = std::map<std::tuple<OperationIndex, int, int>, Seconds>;

  StepSeconds(const Program& program, CostModel& costs, const std::vector<int>& node_of_rank,
              std::shared_ptr<KnownExchanges> known = std::make_shared<KnownExchanges>());

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
  Seconds exchange(const Placement::Operation& operation, const Work& work, ElementType type);
  Seconds together(const Step& step);
  Bytes chunks_of(const Step& exchange) const;
  Bytes slice_of(const Step& step) const;
  Bytes share_of(const Step& update) const;

  const Program& program_;
  CostModel& costs_;
  const std::vector<int>& node_of_rank_;
  std::shared_ptr<KnownExchanges> known_;
  IndexedVector<WorkIndex, TaskTime> times_;
  // Ranks over which the gradient of a parameter is scattered; 0: it is not.
  IndexedVector<ParameterIndex, int64_t> owners_;
};

}  // namespace cortado
