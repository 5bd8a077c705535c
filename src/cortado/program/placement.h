#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/base/batch_part.h"
#include "cortado/base/element_type.h"
#include "cortado/net/network.h"
#include "cortado/parallel/layout.h"
#include "cortado/parallel/rank_group.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

using ValueIndex = TypedIndex<struct ValueTag>;          // of Placement::values
using OperationIndex = TypedIndex<struct OperationTag>;  // of Placement::operations

// A network cut by a strategy, on all ranks: which device computes which box and what moves between layers
// (docs/explanation/cutting.md). Every rank makes the same Placement and lowers its own part of it.
struct Placement {
  // A tensor as it lies over the ranks after one operation.
  struct Value {
    std::string name;
    TensorIndex tensor;
    ElementType type = ElementType::f32;
    Layout layout;
    bool partial = false;  // ranks hold addends of the tensor, to be summed
    OperationIndex producer;
    std::vector<OperationIndex> consumers;
    bool needs_gradient = false;
    double loss_weight = 0;  // the gradient starts here
  };

  // What the ranks do together: read samples, compute a layer, or move a tensor.
  struct Operation {
    enum class Kind {
      source,
      compute,
      copy,  // every rank gets the box it needs (halos, gathered channels); backward: sums at the owner
      sum    // addends are summed at the owner (r cuts, losses); backward: copies to those who added
    };
    Kind kind = Kind::compute;
    // Where the gradients of the parameters are computed.
    enum class Gradients {
      own,        // by this operation
      elsewhere,  // by one of `only` (GradientSync::replicate)
      only        // this one runs backward alone: it computes the whole gradients, or gathers for that
    };
    NodeIndex node{};  // the layer, or the one that the movement is for; nowhere: for the report
    LayerPtr layer{};
    LayerStrategy strategy{};
    std::vector<ParameterIndex> parameters{};
    std::vector<ValueIndex> inputs{}, outputs{};
    std::vector<Layout> reads{};  // compute: per input, the box that each rank reads
    std::vector<bool> input_gradients{};
    Gradients gradients = Gradients::own;
    bool recomputed = false;       // what it makes is not kept for the backward pass but made again
    Layout domain{};               // compute: per rank, its share of the layer's domain
    std::vector<Layout> slices{};  // compute: per parameter and rank
    // compute: per rank, those over which its sums within the layer go: those with the same channels, since
    // each channel has its own statistics; or all ranks, where the layer's output itself is a sum.
    std::vector<RankGroup> groups{};
    // compute: the layer that the same kernel might compute next (program/passes.h, make_chain); nowhere:
    // none
    OperationIndex follower{};
  };

  int ranks = 1;
  bool reproducible = false;  // sums over ranks go in a fixed tree (base/sum_tree.h)
  IndexedVector<ValueIndex, Value> values;
  IndexedVector<OperationIndex, Operation> operations;
  IndexedVector<TensorIndex, ValueIndex> tensor_values;  // the value that holds it, each element once
  IndexedVector<TensorIndex, ValueIndex> report_values;  // whole for the report; nowhere: not reported
  IndexedVector<ParameterIndex, Layout> slices;          // what each rank holds
  IndexedVector<ParameterIndex, ElementType> parameter_types;
  std::map<std::string, std::vector<BatchPart>> batches;  // per source layer and rank: what it reads
  // Per rank, those that hold the same slice: its gradient is summed over them (the segmented allreduce of
  // channel and filter parallelism; Dryden et al. 2019, section 3.2).
  IndexedVector<ParameterIndex, std::vector<RankGroup>> replicas;
};

// Sets Operation::groups and follower, and replicas, by all else. A part of place(). (complete_placement.cpp)
void complete(Placement& placement);

// Sets Operation::recomputed of what the strategies ask for, as far as it can be: outputs that are losses,
// that are reported, or that whole gradients of replicas are computed from are kept. What one kernel might
// run together with an operation that is recomputed is recomputed with it, and so is what only moves its
// outputs. A part of place(). (mark_recomputed.cpp)
void mark_recomputed(Placement& placement);

// `reproducible`: sums over ranks go in a fixed tree; for strategies of reproducible_strategies().
Placement place(const Network& network, const NodeStrategies& strategies, int ranks,
                bool reproducible = false);

}  // namespace cortado
