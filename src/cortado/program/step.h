#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/program/buffer.h"

namespace cortado {

// Of a work's kernel. The partial ones compute addends of sums over ranks that the pass after them needs.
enum class Pass { forward_partial, forward, backward_partial, backward_weights, backward };

// What a step does. A group is of ranks.
namespace steps {

struct Load {  // brings in the next batch of a source
  WorkIndex work{};
};
struct Compute {
  Pass pass = Pass::forward;
  WorkIndex work{};
  View scratch{}, sums{};
};
// The forward pass is over, and losses are known: what is not finite ends the iteration here.
struct Barrier {};
struct Seed {  // writes[0], the gradient of a loss, is filled with its weight
  double weight = 0;
};
struct Accumulate {};         // writes[0] = sum of reads
struct AccumulateParameter {  // gradient of the parameter += reads[0]
  ParameterIndex parameter{};
};
struct Exchange {  // moves a tensor: the movement of its work, backward its adjoint
  WorkIndex work{};
  bool backward = false;
  View staging{};
  int tag = -1;              // the same on all ranks
  std::vector<int> group{};  // of a collective, else empty
};
struct SumStatistics {  // addends of a work's partial pass, summed over the group
  WorkIndex work{};
  bool backward = false;
  View sums{};
  std::vector<int> group{};
};
struct SumGradient {  // gradients of the parameters of a chunk, summed over the group
  std::vector<ParameterIndex> parameters{};
  std::vector<int> group{};
};
struct ScatterGradient {  // the same of one parameter, each rank of the group getting its share
  ParameterIndex parameter{};
  std::vector<int> group{};
};
struct Update {  // the parameter by its gradient; after ScatterGradient only this rank's share
  ParameterIndex parameter{};
};
struct GatherParameter {  // shares of the parameter from their owners
  ParameterIndex parameter{};
  std::vector<int> group{};
};

}  // namespace steps

enum class Lane { compute, communication };

// The smallest thing that a Program orders.
struct Step {
  using Action =
      std::variant<steps::Load, steps::Compute, steps::Barrier, steps::Seed, steps::Accumulate,
                   steps::AccumulateParameter, steps::Exchange, steps::SumStatistics, steps::SumGradient,
                   steps::ScatterGradient, steps::Update, steps::GatherParameter>;
  Action action{};
  Lane lane = Lane::compute;
  std::vector<View> reads{}, writes{};
  std::vector<StepIndex> waits{};         // earlier steps that must have ended: of the other lane or, as
                                          // communication steps overlap, of the communication lane
  bool late = false;                      // works for the iteration before; not done in the first one
  bool carried = false;                   // communication that may still be under way in the next iteration
  std::vector<StepIndex> waits_before{};  // carried steps that must have ended since the iteration before
  // Communication: the first compute step that waits for it. Steps of the next iteration count on from the
  // last step of this one. Of what is under way, the lane moves first what is needed soonest. 0: not known.
  int needed = 0;

  template <typename Kind>
  bool is() const {
    return std::holds_alternative<Kind>(action);
  }
  template <typename Kind>
  const Kind* as() const {  // null: it is another kind of step
    return std::get_if<Kind>(&action);
  }
  template <typename Kind>
  Kind* as() {
    return std::get_if<Kind>(&action);
  }
  bool runs(Pass pass) const { return is<steps::Compute>() && as<steps::Compute>()->pass == pass; }

  // What steps of several kinds have.
  WorkIndex work() const;                              // nowhere: it is of no work
  std::span<const ParameterIndex> parameters() const;  // that it sums, updates or gathers
  const std::vector<int>& group() const;               // ranks that do it together; none: it is no collective
};

std::string_view name_of(Pass pass);
std::string_view name_of(const Step& step);  // "load", "backward-weights", "exchange", ...

}  // namespace cortado
