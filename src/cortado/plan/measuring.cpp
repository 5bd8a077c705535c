#include "cortado/plan/measuring.h"

#include "cortado/base/error.h"
#include "cortado/plan/search.h"

namespace cortado::plan {
namespace {

// The same costs, measured where they are bounds.
class Certain : public CostModel {
 public:
  explicit Certain(CostModel& costs) : costs_(costs) {}
  TaskTime task(const Task& task, int device) override { return costs_.measure(task, device); }
  Seconds update(Bytes parameters, int device) override { return costs_.update(parameters, device); }
  Seconds exchange(const ExchangeVolume& volume) override { return costs_.exchange(volume); }
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) override {
    return costs_.collective(kind, groups, bytes);
  }

 private:
  CostModel& costs_;
};

class Measurer {
 public:
  Measurer(const Network& network, const PricingOptions& options, CostModel& costs, PlanGraph& graph)
      : network_(network), options_(options), costs_(costs), certain_(costs), graph_(graph) {}

  Measuring run(const std::vector<std::vector<int>>& assignments) {
    for (const auto& assignment : assignments) {
      for (size_t v = 0; v < assignment.size(); ++v) measure(static_cast<int>(v), assignment[v]);
    }
    do {
      refresh();
      const LazyOptimum found = lazy_search(
          graph_.costs, [&](int vertex, int candidate) { return !priced(vertex, candidate).compute.bound; },
          [&](CostGraph& costs, int vertex, int candidate) {
            measure(vertex, candidate);
            costs.set_seconds(vertex, candidate, priced(vertex, candidate).total().count);
          });
      done_.searches += found.searches;
    } while (passed_);
    return done_;
  }

 private:
  const Priced& priced(int vertex, int candidate) const {
    return graph_.candidates[static_cast<size_t>(vertex)][static_cast<size_t>(candidate)];
  }

  void set(int vertex, int candidate, CostModel& costs) {
    Priced one = price(network_, graph_.groups[static_cast<size_t>(vertex)],
                       priced(vertex, candidate).strategy, options_, costs);
    graph_.costs.set_seconds(vertex, candidate, one.total().count);
    graph_.candidates[static_cast<size_t>(vertex)].set(static_cast<size_t>(candidate), std::move(one));
  }

  void measure(int vertex, int candidate) {
    if (!priced(vertex, candidate).compute.bound) return;
    const Seconds bound = priced(vertex, candidate).compute.total();
    set(vertex, candidate, certain_);
    ensure(!priced(vertex, candidate).compute.bound, "what was measured is no bound");
    if (priced(vertex, candidate).compute.total() < bound) passed_ = true;
    ++done_.candidates;
  }

  // All bounds anew: equal tasks are known by now, and a bound that a measurement passed is none.
  void refresh() {
    passed_ = false;
    for (int v = 0; v < graph_.costs.size(); ++v) {
      for (int c = 0; c < graph_.costs.candidates(v); ++c) {
        if (priced(v, c).compute.bound) set(v, c, costs_);
      }
    }
  }

  const Network& network_;
  const PricingOptions& options_;
  CostModel& costs_;
  Certain certain_;
  PlanGraph& graph_;
  Measuring done_;
  bool passed_ = false;  // a measurement was less than its bound
};

}  // namespace

Measuring measure_optimum(const Network& network, const PricingOptions& options, CostModel& costs,
                          PlanGraph& graph, const std::vector<std::vector<int>>& assignments) {
  return Measurer(network, options, costs, graph).run(assignments);
}

}  // namespace cortado::plan
