#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "cortado/base/overloaded.h"
#include "cortado/net/network.h"
#include "cortado/parallel/collectives.h"
#include "cortado/parallel/rank_group.h"
#include "cortado/program/buffer.h"

namespace cortado {

// A pass of a work's kernel. The partial ones compute addends of sums over ranks that the pass after them
// needs.
enum class Pass { forward_partial, forward, backward_partial, backward_weights, backward };

// How a step uses the gradients, or the values, of its parameters.
enum class Use { none, reads, writes };

// What is the same for all steps of a kind. What follows from it need not ask for the kind.
struct StepFacts {
  std::string_view name{};
  std::optional<Collective> collective{};  // of its group
  Use gradients = Use::none, values = Use::none;
};

// What a step does. A group is of ranks. A new kind gets facts, a place in the sets below, and one in
// Step::Action. The compiler then names each visit of an action that must handle it.
namespace steps {

struct Load {  // brings in the next batch of a source
  static constexpr StepFacts facts{.name = "load"};
  WorkIndex work{};
};
struct Compute {
  static constexpr StepFacts facts{};  // it has the name of its pass
  Pass pass = Pass::forward;
  WorkIndex work{};
  View scratch{}, sums{};
  bool again = false;  // of a forward pass: run once more for the backward pass (recompute.cpp)
};
// The forward pass is over, and losses are known: what is not finite ends the iteration here.
struct Barrier {
  static constexpr StepFacts facts{.name = "barrier"};
};
struct Seed {  // writes[0], the gradient of a loss, is filled with its weight
  static constexpr StepFacts facts{.name = "seed"};
  double weight = 0;
};
struct Accumulate {  // writes[0] = sum of reads
  static constexpr StepFacts facts{.name = "accumulate"};
};
struct AccumulateParameter {  // gradient of the parameter += reads[0]
  static constexpr StepFacts facts{.name = "accumulate-parameter", .gradients = Use::writes};
  ParameterIndex parameter{};
};
struct Exchange {  // moves a tensor: the movement of its work, backward its adjoint
  static constexpr StepFacts facts{.name = "exchange"};  // its movement may be a collective
  WorkIndex work{};
  bool backward = false;
  View from{}, to{};   // read and written: the tensor before and after; nowhere: none is
  View staging{};      // what is packed; nowhere: nothing
  int tag = -1;        // the same on all ranks
  RankGroup group{};   // of a collective, else empty
  bool again = false;  // as of Compute
};
struct SumStatistics {  // addends of a work's partial pass, summed over the group
  static constexpr StepFacts facts{.name = "sum-statistics", .collective = Collective::allreduce};
  WorkIndex work{};
  bool backward = false;
  View sums{};
  RankGroup group{};
};
struct SumGradient {  // gradients of the parameters of a chunk, summed over the group
  static constexpr StepFacts facts{
      .name = "sum-gradient", .collective = Collective::allreduce, .gradients = Use::writes};
  std::vector<ParameterIndex> parameters{};
  RankGroup group{};
};
struct ScatterGradient {  // the same of one parameter, each rank of the group getting its share
  static constexpr StepFacts facts{
      .name = "scatter-gradient", .collective = Collective::reduce_scatter, .gradients = Use::writes};
  ParameterIndex parameter{};
  RankGroup group{};
  bool served = false;  // by servers (GradientSync::server), after all computing
};
struct Update {  // the parameter by its gradient; after ScatterGradient only this rank's share
  static constexpr StepFacts facts{.name = "update", .gradients = Use::reads, .values = Use::writes};
  ParameterIndex parameter{};
};
struct GatherParameter {  // shares of the parameter from their owners
  static constexpr StepFacts facts{
      .name = "gather-parameter", .collective = Collective::allgather, .values = Use::writes};
  ParameterIndex parameter{};
  RankGroup group{};
  bool served = false;  // by servers, before the next iteration
};

template <typename Kind>
concept Local = OneOf<Kind, Load, Compute, Barrier, Seed, Accumulate, AccumulateParameter, Update>;
template <typename Kind>  // collectives of gradients or values
concept MovesParameters = OneOf<Kind, SumGradient, ScatterGradient, GatherParameter>;
template <typename Kind>  // always collectives; an exchange may be one
concept OfGroup = MovesParameters<Kind> || OneOf<Kind, SumStatistics>;
template <typename Kind>  // with other ranks
concept Communicates = OfGroup<Kind> || OneOf<Kind, Exchange>;

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
  bool again() const;  // does once more what a step of the forward pass did

  const StepFacts& facts() const;
  bool communicates() const;  // with other ranks

  // What steps of several kinds have.
  WorkIndex work() const;                              // nowhere: it is of no work
  std::span<const ParameterIndex> parameters() const;  // that it sums, updates or gathers
  const RankGroup& group() const;                      // ranks that do it together; none: it is no collective
};

bool is_forward(Pass pass);
std::string_view name_of(Pass pass);
std::string_view name_of(const Step& step);  // "load", "backward-weights", "exchange", ...

}  // namespace cortado
