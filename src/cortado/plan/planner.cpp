#include "cortado/plan/planner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <optional>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/seconds_since.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/plan/measuring.h"
#include "cortado/plan/memory.h"
#include "cortado/plan/plan_graph.h"
#include "cortado/plan/prune.h"
#include "cortado/plan/threads.h"
#include "cortado/plan/tradeoff.h"

namespace cortado::plan {
namespace {

// What sums and transfers are counted at, of what they take, to find plans that hide them.
constexpr double judged_weights[] = {1, 0.5, 0.1};

class PlanMaker {
 public:
  PlanMaker(const Network& network, const PricingOptions& pricing, const PlanOptions& options,
            PlanGraph graph)
      : network_(network), pricing_(pricing), options_(options), graph_(std::move(graph)) {
    for (std::string_view name : compared_strategies(pricing))
      baselines_.push_back({name, graph_.assignment(network, name)});
  }

  Plan run() {
    auto marginals = marginals_beside();
    const Cheapest best = cheapest_within(
        {graph_.costs, [this]() -> const CostGraph& { return held(); }, peak(), options_.memory});
    Plan plan;
    const std::vector<int> taken = options_.judge ? judged(best, plan.judged.emplace()) : best.assignment;
    static_cast<Assignment&>(plan) = assignment("plan", taken);
    if (taken == best.assignment) plan.seconds = best.seconds;
    plan.strategy = strategy_of(taken);
    plan.proven = best.proven && plan.seconds <= best.seconds;
    plan.lower_bound = best.lower_bound;
    plan.memory_limit = options_.memory;
    plan.limited = best.limited;
    plan.unlimited = best.unlimited;
    plan.search = best.search;
    for (const auto& candidates : graph_.candidates) plan.candidates += static_cast<int>(candidates.size());
    bound_what_was_omitted(plan);
    for (const auto& [name, chosen] : baselines_) plan.baselines.push_back(compared(name, chosen));
    add_best_of_each(plan);
    add_alternatives(plan, best, taken, marginals.get());
    if (options_.frontier_points > 0) add_frontier(plan);
    return plan;
  }

 private:
  // What is held at least, made when a limit must be met or a frontier is asked for.
  const CostGraph& held() const {
    if (!held_) held_ = held_graph(graph_);
    return *held_;
  }

  // Whether more threads would gain the search little: its largest products have about most^3 additions, and
  // most of them far fewer.
  bool small_tables() const {
    double most = 0;
    for (const Candidates& of_vertex : graph_.candidates)
      most = std::max(most, static_cast<double>(of_vertex.size()));
    return most * most * most < 8 * worth_threads;
  }

  // The vertices' marginals, which need nothing of the search: on a thread of their own, if there is one to
  // be had and tables are small; else when they are asked for, with all threads.
  std::future<std::vector<std::vector<double>>> marginals_beside() const {
    const bool beside = compute_threads() > 1 && small_tables();
    const int threads = beside ? 1 : compute_threads();
    const auto when = beside ? std::launch::async | std::launch::deferred : std::launch::deferred;
    return std::async(when, [this, threads] {
      const ComputeThreads of_these{threads};
      return min_marginals(graph_.costs);
    });
  }

  std::function<Bytes(const std::vector<int>&)> peak() const {
    return [this](const std::vector<int>& assignment) { return peak_bytes(graph_, assignment); };
  }

  // The costs with sums and transfers counted at so much of what they take.
  CostGraph weighed(double of_sums, double of_transfers) const {
    CostGraph result;
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      std::vector<double> seconds;
      for (const Priced& priced : graph_.candidates[v])
        seconds.push_back((priced.compute.total() + priced.update).count +
                          of_sums * (priced.sums + priced.sync).count);
      result.add_vertex(graph_.costs.vertices()[v].name, std::move(seconds));
    }
    std::map<const std::vector<double>*, Costs> known;
    for (const CostGraph::Edge& edge : graph_.costs.edges()) {
      Costs& less = known[edge.seconds.get()];
      if (!less) {
        auto costs = std::make_shared<std::vector<double>>(*edge.seconds);
        for (double& each : *costs) each = std::isinf(each) ? each : of_transfers * each;
        less = std::move(costs);
      }
      result.add_edge(edge.from, edge.to, less);
    }
    return result;
  }

  // The optimum, those of other weights, and the built-in strategies; each once, those that fit.
  std::vector<std::vector<int>> contenders(const std::vector<int>& optimum) const {
    std::vector<std::vector<int>> all{optimum};
    const auto add = [&](const std::vector<int>& one) {
      const bool fits = options_.memory.count == 0 || peak_bytes(graph_, one) <= options_.memory;
      if (fits && std::ranges::find(all, one) == all.end()) all.push_back(one);
    };
    for (double of_sums : judged_weights)
      for (double of_transfers : judged_weights) add(search(weighed(of_sums, of_transfers)).assignment);
    for (const Baseline& baseline : baselines_) add(baseline.assignment);
    return all;
  }

  // The contender that takes least; of equal ones the first.
  std::vector<int> judged(const Cheapest& best, Judged& result) const {
    std::vector<int> fastest;
    for (std::vector<int>& one : contenders(best.assignment)) {
      const Seconds seconds = options_.judge(strategy_of(one));
      if (result.strategies == 0) result.cheapest = seconds;
      if (result.strategies == 0 || seconds < result.seconds) {
        result.seconds = seconds;
        fastest = std::move(one);
      }
      ++result.strategies;
    }
    for (const Candidates& candidates : graph_.candidates)
      result.lower_bound += std::ranges::min(candidates, {}, &Priced::first).first;
    return fastest;
  }

  // Candidates that were left out may be cheaper. One more candidate for each vertex, that costs as little as
  // the cheapest of them and moves nothing, gives a bound for all.
  void bound_what_was_omitted(Plan& plan) const {
    if (std::ranges::none_of(graph_.omitted, [](double seconds) { return std::isfinite(seconds); })) return;
    const double bound = search(with_free_candidates(graph_.costs, graph_.omitted)).seconds;
    plan.lower_bound = std::min(plan.lower_bound, {bound});
    constexpr double rounding = 1e-9;
    plan.proven = plan.proven && plan.lower_bound.count >= plan.seconds.count * (1 - rounding);
    if (plan.proven) plan.lower_bound = plan.seconds;
  }

  const Priced& chosen(size_t vertex, const std::vector<int>& assignment) const {
    return graph_.candidates[vertex][static_cast<size_t>(assignment[vertex])];
  }

  Assignment assignment(std::string_view name, const std::vector<int>& candidates) const {
    Assignment result{.name = std::string(name), .seconds = {graph_.costs.seconds(candidates)}};
    for (size_t v = 0; v < graph_.groups.size(); ++v) result.groups.push_back(planned(v, candidates));
    add_transfers(result.groups, candidates);
    result.bytes = graph_.sent_bytes(candidates);
    result.memory = peak_bytes(graph_, candidates);
    return result;
  }

  // A built-in strategy, or one made of them.
  Assignment compared(std::string_view name, const std::vector<int>& candidates) const {
    return is_opponent(name) ? with_servers(name, candidates) : without_owners(name, candidates);
  }

  // Servers are no candidate: they are counted here, beside the same cuts.
  Assignment with_servers(std::string_view name, const std::vector<int>& candidates) const {
    Assignment result = assignment(name, candidates);
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      const Priced& priced = chosen(v, candidates);
      PlannedGroup& group = result.groups[v];
      if (priced.strategy.config.devices.size() < 2) continue;
      group.strategy.sync = GradientSync::server;
      group.sync = priced.sync_by_servers;
      group.update = priced.update_by_servers;
      group.bytes += priced.more_bytes_by_servers;
      group.memory += priced.more_parameters_by_servers;
      result.seconds += priced.more_by_servers();
      result.bytes += priced.more_bytes_by_servers;
      result.memory += priced.more_parameters_by_servers;
    }
    return result;
  }

  // Strategies that do not sum gradients by owners: a candidate that does so is counted as if it summed by
  // allreduce.
  Assignment without_owners(std::string_view name, const std::vector<int>& candidates) const {
    Assignment result = assignment(name, candidates);
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      const Priced& priced = chosen(v, candidates);
      PlannedGroup& group = result.groups[v];
      if (priced.strategy.sync != GradientSync::owner) continue;
      group.strategy.sync = GradientSync::allreduce;
      group.update += priced.more_by_allreduce;
      group.memory += priced.more_parameters_by_allreduce;
      result.seconds += priced.more_by_allreduce;
      result.memory += priced.more_parameters_by_allreduce;
    }
    return result;
  }

  PlannedGroup planned(size_t vertex, const std::vector<int>& assignment) const {
    const Priced& priced = chosen(vertex, assignment);
    PlannedGroup group{.nodes = graph_.groups[vertex].nodes, .strategy = priced.strategy};
    group.compute = priced.compute;
    group.sums = priced.sums;
    group.sync = priced.sync;
    group.update = priced.update;
    group.bytes = priced.sums_bytes + priced.sync_bytes;
    group.memory = priced.memory;
    group.shares = shares_of(network_.nodes()[group.nodes[0]], priced.strategy.config);
    return group;
  }

  std::vector<double> shares_of(const Network::Node& node, const ParallelConfig& config) const {
    const std::vector<Shape> inputs = network_.shapes_of(node.inputs);
    const std::vector<Shape> outputs = network_.shapes_of(node.outputs);
    const LayerCutter cutter(*node.layer, inputs, outputs, config);
    std::vector<double> shares(static_cast<size_t>(pricing_.devices));
    for (size_t i = 0; i < config.devices.size(); ++i)
      shares[static_cast<size_t>(config.devices[i])] =
          static_cast<double>(cutter.domain(static_cast<int>(i)).shape().size());
    const double most = *std::ranges::max_element(shares);
    for (double& share : shares) share /= most;
    return shares;
  }

  void add_transfers(std::vector<PlannedGroup>& groups, const std::vector<int>& assignment) const {
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      const PlanGraph::Edge& edge = graph_.edges[e];
      PlannedGroup& group = groups[static_cast<size_t>(edge.to)];
      const auto& costs = graph_.costs.edges()[e];
      const size_t row = static_cast<size_t>(assignment[static_cast<size_t>(edge.from)]);
      const size_t column = static_cast<size_t>(assignment[static_cast<size_t>(edge.to)]);
      group.transfer +=
          {(*costs.seconds)[row * graph_.candidates[static_cast<size_t>(edge.to)].size() + column]};
      const Bytes bytes = graph_.moved(edge, assignment);
      group.inputs.push_back({edge.from, bytes});
      group.bytes += bytes;
    }
  }

  // Where memory limits the plan, something else may be cheaper without the limit; it costs no less with it.
  void add_alternatives(Plan& plan, const Cheapest& best, const std::vector<int>& taken,
                        const std::vector<std::vector<double>>& marginals) const {
    const auto alternative = [&](size_t v, int candidate) -> Alternative {
      if (candidate < 0) return {{}, {infinity}};
      const double adds = marginals[v][static_cast<size_t>(candidate)] - plan.seconds.count;
      const Priced& priced = graph_.candidates[v][static_cast<size_t>(candidate)];
      return {priced.strategy, {best.limited ? std::max(adds, 0.0) : adds}, priced.compute.bound};
    };
    for (size_t v = 0; v < plan.groups.size(); ++v) {
      int second = -1;
      for (size_t c = 0; c < marginals[v].size(); ++c) {
        if (static_cast<int>(c) == taken[v] || std::isinf(marginals[v][c])) continue;
        if (second < 0 || marginals[v][c] < marginals[v][static_cast<size_t>(second)])
          second = static_cast<int>(c);
      }
      plan.runners_up.push_back(alternative(v, second));
      const int by_sample = baseline("data")[v];
      plan.by_sample.push_back(by_sample == taken[v] ? Alternative{chosen(v, taken).strategy, {0}}
                                                     : alternative(v, by_sample));
    }
  }

  // The cheapest assignment in which every layer takes a configuration that a baseline gives it.
  void add_best_of_each(Plan& plan) const {
    std::vector<std::vector<int>> kept(graph_.groups.size());
    for (size_t v = 0; v < kept.size(); ++v) {
      std::set<int> of_baselines;
      for (const auto& [name, chosen] : baselines_) of_baselines.insert(chosen[v]);
      kept[v].assign(of_baselines.begin(), of_baselines.end());
    }
    const auto original = [&](std::vector<int> assignment) {
      for (size_t v = 0; v < kept.size(); ++v) assignment[v] = kept[v][static_cast<size_t>(assignment[v])];
      return assignment;
    };
    CostGraph costs = restricted(graph_.costs, kept);
    std::optional<CostGraph> held_of_kept;
    const auto held_by = [&]() -> const CostGraph& {
      if (!held_of_kept) held_of_kept = restricted(held(), kept);
      return *held_of_kept;
    };
    for (size_t v = 0; v < kept.size(); ++v) {
      for (size_t c = 0; c < kept[v].size(); ++c) {
        const Priced& priced = graph_.candidates[v][static_cast<size_t>(kept[v][c])];
        costs.set_seconds(static_cast<int>(v), static_cast<int>(c),
                          (priced.total() + priced.more_by_allreduce).count);
      }
    }
    const auto peak = [&](const std::vector<int>& a) { return peak_bytes(graph_, original(a)); };
    std::vector<int> best;
    try {
      best = cheapest_within({costs, held_by, peak, options_.memory}).assignment;
    } catch (const NothingFits&) {
      best = search(costs).assignment;
    }
    plan.baselines.push_back(without_owners("best-of-each", original(best)));
  }

  void add_frontier(Plan& plan) const {
    std::vector<Tradeoff> points{{plan.seconds, plan.memory, true}};
    for (const auto& point : Tradeoffs(graph_.costs, held()).corners(options_.frontier_points))
      points.push_back({{point.seconds}, peak_bytes(graph_, point.assignment)});
    std::ranges::stable_sort(points, [](const Tradeoff& a, const Tradeoff& b) {
      return a.memory != b.memory ? a.memory < b.memory : a.seconds < b.seconds;
    });
    // Peaks are not sums, so a corner of the sums may be beaten in both.
    for (const Tradeoff& point : points) {
      constexpr double rounding = 1e-9;
      if (!plan.frontier.empty()) {
        Tradeoff& last = plan.frontier.back();
        if (point.seconds.count >= last.seconds.count * (1 - rounding)) {
          last.chosen |= point.chosen && point.seconds.count <= last.seconds.count * (1 + rounding);
          continue;
        }
      }
      plan.frontier.push_back(point);
    }
  }

  Strategy strategy_of(const std::vector<int>& assignment) const {
    Strategy strategy{.net = network_.name(), .ranks = pricing_.devices, .rules = {}};
    for (size_t v = 0; v < graph_.groups.size(); ++v) {
      LayerStrategy layer = chosen(v, assignment).strategy;
      for (NodeIndex node : graph_.groups[v].nodes) {
        strategy.rules.push_back({network_.nodes()[node].name, layer, identity_of(network_, node)});
        layer.config = following(layer.config);
        if (facts_of(layer.sync).replicates) layer.sync = GradientSync::allreduce;
      }
    }
    return strategy;
  }

  const std::vector<int>& baseline(std::string_view name) const {
    return std::ranges::find(baselines_, name, &Baseline::name)->assignment;
  }

  struct Baseline {
    std::string_view name;
    std::vector<int> assignment;
  };
  const Network& network_;
  const PricingOptions& pricing_;
  const PlanOptions& options_;
  PlanGraph graph_;
  mutable std::optional<CostGraph> held_;  // held()
  std::vector<Baseline> baselines_;
};

// Measures what the built-in strategies and an optimum use, where their costs are only bounds.
void measure(const Network& network, const PricingOptions& options, CostModel& costs, PlanGraph& graph) {
  const bool bounds = std::ranges::any_of(graph.candidates, [](const Candidates& candidates) {
    return std::ranges::any_of(candidates, [](const Priced& priced) { return priced.compute.bound; });
  });
  if (!bounds) return;
  std::vector<std::vector<int>> baselines;
  for (std::string_view name : compared_strategies(options))
    baselines.push_back(graph.assignment(network, name));
  measure_optimum(network, options, costs, graph, baselines);
}

}  // namespace

Plan make_plan(const Network& network, const PricingOptions& pricing, CostModel& costs,
               const std::vector<int>& node_of_device, const PlanOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  PlanGraph graph = make_plan_graph(network, pricing, costs, node_of_device);
  measure(network, pricing, costs, graph);
  const Seconds seconds = seconds_since(begin);
  Plan plan = PlanMaker(network, pricing, options, std::move(graph)).run();
  plan.pricing_took = seconds;
  return plan;
}

bool fits(const Network& network, const PricingOptions& pricing, CostModel& costs,
          const std::vector<int>& node_of_device, Bytes memory) {
  const PlanGraph graph = make_plan_graph(network, pricing, costs, node_of_device);
  const CostGraph held = held_graph(graph);
  const auto peak = [&](const std::vector<int>& assignment) { return peak_bytes(graph, assignment); };
  try {
    cheapest_within({graph.costs, [&held]() -> const CostGraph& { return held; }, peak, memory});
    return true;
  } catch (const NothingFits&) {
    return false;
  }
}

}  // namespace cortado::plan
