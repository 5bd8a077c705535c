#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "cortado/plan/cost_graph.h"
#include "cortado/plan/pricing.h"

namespace cortado::plan {

// A network as the search sees it: a vertex per group, with a candidate per configuration, and an edge per
// tensor between groups (Eq. 1). A tensor that several groups read is priced for each of them; where they
// need the same boxes it travels once, so that Eq. 1 is an upper bound there.
struct PlanGraph {
  struct Edge {
    int from = 0, to = 0;  // vertices
    size_t output = 0, input = 0;
    bool backward = false;  // a gradient comes back
    ElementType type = ElementType::f32;
  };
  CostGraph costs;
  std::vector<Group> groups;           // per vertex
  std::vector<Candidates> candidates;  // per vertex
  std::vector<Edge> edges;             // those of `costs`, in order; after them only those that
                                       // give layers of one parameter the same cut
  std::vector<int> node_of_device;
  // Per vertex: what the cheapest of the candidates costs that were left out, for all together would need too
  // much memory; infinity: none was.
  std::vector<double> omitted;
  std::vector<Strategy> built_in;  // as built_in_strategies() names them

  // What moves along an edge when its ends take these candidates. Remembers it; one thread at a time may ask.
  ExchangeVolume volume(const Edge& edge, const std::vector<int>& assignment) const;
  // Bytes that it moves in an iteration, forward and back.
  Bytes moved(const Edge& edge, const std::vector<int>& assignment) const;
  // The number of the candidate with this configuration and, where the strategy says so, with gradients that
  // every replica computes. -1: there is none.
  int candidate(int vertex, const LayerStrategy& strategy) const;
  // The candidates of a strategy whose layers' are candidates (the built-in ones').
  std::vector<int> assignment(const Network& network, const Strategy& strategy) const;
  std::vector<int> assignment(const Network& network, std::string_view built_in) const;
  Bytes sent_bytes(const std::vector<int>& assignment) const;  // that all devices send in an iteration

 private:
  struct KnownVolume {
    GridLayout owned, needed;  // live as long as their identities are keys
    ExchangeVolume volume;
  };
  mutable std::map<std::tuple<const void*, const void*, ElementType>, KnownVolume> known_;
};

// The built-in strategies' configurations are candidates, too. Where tables of all candidates would take more
// memory than the options allow, each vertex keeps some: its cheapest ones, those that are cheap for the
// whole net, and those that hold least.
PlanGraph make_plan_graph(const Network& network, const PricingOptions& options, CostModel& costs,
                          std::vector<int> node_of_device);

}  // namespace cortado::plan
