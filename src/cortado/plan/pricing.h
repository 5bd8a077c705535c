#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "cortado/cost/cost_model.h"
#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/plan/groups.h"
#include "cortado/plan/layer_grid.h"
#include "cortado/plan/priced.h"

namespace cortado::plan {

// `network` for training has backward passes, sums of gradients and updates. `history`: tensors of a
// parameter's size that the solver keeps. `dimensions`: along which layers may be cut (candidates_of).
// `weights`: of devices that are unequal; blocks follow them where they can (weighed()).
struct PricingOptions {
  int devices = 1;
  int history = 1;
  std::string dimensions{all_dimensions};
  std::vector<double> weights{};
  bool replicate = true;  // replicas may compute whole gradients: all devices round the same way
  // Where costs of all pairs of candidates at the ends of edges would take more, or where more pairs differ,
  // counted once for each device, only those are priced that may be part of an optimum. Where these are still
  // too many, each group keeps about `kept_candidates`.
  Bytes most_tables{int64_t{1} << 31};
  double most_volumes = 2.5e10;
  double most_tried_volumes = 6e9;  // of each try to find them, but the first
  size_t kept_candidates = 400;
  std::vector<Strategy> good{};  // whose configurations are kept whatever they cost, where layers allow them
};
// The built-in strategies that plans are compared with: all, or without those that replicate gradients.
std::vector<std::string_view> compared_strategies(const PricingOptions& options);
// All devices of a machine.
PricingOptions pricing_for(const DeviceGraph& machine, std::string_view dimensions = all_dimensions,
                           int history = 1);

// Prices one group under many configurations. All that it is given must outlive it.
class GroupPricer {
 public:
  GroupPricer(const Network& network, const Group& group, const PricingOptions& options, CostModel& costs);
  // Gradients are summed by owners or allreduce, whichever takes less.
  Priced price(const ParallelConfig& config);
  // Every replica of the first layer computes its whole gradients (GradientSync::replicate). None: it cannot,
  // or that spares no bytes, in which case it takes longer. Not for layers cut along r.
  std::optional<Priced> price_replicated(const ParallelConfig& config);
  // Both at once: they have most of their costs in common.
  struct Ways {
    Priced summed;
    std::optional<Priced> replicated;
  };
  Ways price_all_ways(const ParallelConfig& config);

 private:
  class Run;
  // What it takes to sum a parameter's gradient over the devices, where these are their slices.
  struct GradientSum {
    GridLayout slices;
    Seconds allreduce{}, scatter{}, gather{}, served{};
    Bytes bytes;         // that all devices send, by allreduce or owners
    Bytes served_bytes;  // to servers and back
    int replicas = 1;    // of a slice
  };
  struct Member {
    Member(const Network& network, NodeIndex node, int devices);
    const Network::Node& node;
    std::vector<Shape> inputs, outputs;
    std::vector<const Network::Parameter*> parameters;
    LayerGrid grid;
    std::vector<std::vector<GradientSum>> sums;  // per parameter: what is known
  };
  // Layers `begin` to `end` as one kernel runs them on one device.
  Task chain(size_t begin, size_t end, LayerPtr first) const;
  bool may_replicate(const ParallelConfig& config) const;
  std::vector<ElementType> types_of(const std::vector<TensorIndex>& tensors) const;

  const Network& network_;
  const Group& group_;
  const PricingOptions& options_;
  CostModel& costs_;
  std::deque<Member> members_;
  // Cut for one device after the other. Where r is cut: the first layer without bias, those after it.
  Task task_;
  std::optional<Task> summed_, after_;
};

// Prices a group under the strategy's configuration. Of the strategy's way to sum gradients only `replicate`
// counts; the price chooses between the others.
Priced price(const Network& network, const Group& group, const LayerStrategy& strategy,
             const PricingOptions& options, CostModel& costs);

}  // namespace cortado::plan
