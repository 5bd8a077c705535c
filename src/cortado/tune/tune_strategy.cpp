#include "cortado/tune/tune_strategy.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cortado/parallel/config_fit.h"
#include "cortado/tune/schedules.h"

namespace cortado {
namespace {

class Tuner {
 public:
  Tuner(const Strategy& start, const Network& network, int ranks,
        const std::function<Seconds(const Strategy&)>& seconds, const TuneOptions& options)
      : network_(network), ranks_(ranks), seconds_(seconds), options_(options) {
    best_.strategy = with_all_rules(start, network);
    best_.seconds = best_.before = seconds(best_.strategy);
    best_.tried = 1;
    known_.insert(strategy_text(best_.strategy));
    find_units();
  }

  TunedStrategy run() {
    tune_schedules();
    for (bool better = true; better;) {
      better = tune_sums();
      if (options_.cuts) better |= tune_cuts();
      if (better) tune_schedules();
    }
    best_.ended = goes_on();
    return std::move(best_);
  }

 private:
  // Rules whose cuts change together: those of a layer and of the layers without parameters after it.
  using Unit = std::vector<size_t>;

  const Network::Node& node_of(size_t rule) const {
    return network_.nodes()[network_.node(best_.strategy.rules[rule].pattern)];
  }

  void find_units() {
    for (size_t rule = 0; rule < best_.strategy.rules.size(); ++rule) {
      const bool alone =
          units_.empty() || !node_of(rule).parameters.empty() || node_of(rule).inputs.size() > 1;
      if (alone) units_.emplace_back();
      units_.back().push_back(rule);
    }
  }

  bool goes_on() const { return !options_.go_on || options_.go_on(); }

  bool try_out(Strategy other) {
    if (!goes_on() || !known_.insert(strategy_text(other)).second) return false;
    ++best_.tried;
    const Seconds found = seconds_(other);
    if (!(found.count < (1 - least_gain) * best_.seconds.count)) return false;
    best_.strategy = std::move(other);
    best_.seconds = found;
    return true;
  }

  void tune_schedules() {
    const auto layers =
        std::ranges::count_if(network_.nodes(), [](const auto& node) { return !node.parameters.empty(); });
    const Strategy start = best_.strategy;
    for (const Schedule& schedule : schedules(static_cast<int>(layers))) {
      Strategy other = start;
      other.schedule = schedule;
      other.schedule.halves = start.schedule.halves;
      try_out(std::move(other));
    }
    Strategy other = best_.strategy;
    other.schedule.halves = !other.schedule.halves;
    try_out(std::move(other));
  }

  bool tune_sums() {
    if (!options_.replicate) return false;
    std::vector<std::pair<int64_t, size_t>> by_spared;
    for (size_t rule = 0; rule < best_.strategy.rules.size(); ++rule) {
      const auto bytes = replicate_bytes(network_, network_.node(best_.strategy.rules[rule].pattern),
                                         best_.strategy.rules[rule].layer.config.degrees);
      const int64_t spared = bytes ? bytes->spared() : 0;
      if (spared > 0) by_spared.push_back({-spared, rule});
    }
    std::ranges::sort(by_spared);
    bool better = false;
    for (const auto& [spared, rule] : by_spared) {
      for (GradientSync sync : {GradientSync::replicate, GradientSync::allreduce}) {
        Strategy other = best_.strategy;
        other.rules[rule].layer.sync = sync;
        better |= try_out(std::move(other));
      }
    }
    return better;
  }

  // True if a layer of the unit shares a parameter with another layer: both would have to be cut in the same
  // way.
  bool shares(const Unit& unit) const {
    return std::ranges::any_of(unit, [&](size_t rule) {
      return std::ranges::any_of(node_of(rule).parameters, [&](ParameterIndex parameter) {
        return network_.parameters()[parameter].users.size() > 1;
      });
    });
  }

  // Returns the unit cut as another layer is, as far as its shapes allow.
  Strategy cut_as(const Unit& unit, const LayerStrategy& like) const {
    Strategy other = best_.strategy;
    if (like.config.degrees.r > 1) return other;
    for (size_t rule : unit) {
      const auto& node = node_of(rule);
      LayerStrategy& layer = other.rules[rule].layer;
      layer.config = clamped(like.config, *node.layer, network_.shapes_of(node.inputs),
                             network_.shapes_of(node.outputs));
    }
    return other;
  }

  bool tune_cuts() {
    std::vector<Strategy> built_in;
    for (std::string_view name : built_in_strategies())
      built_in.push_back(built_in_strategy(name, network_, ranks_));
    bool better = false;
    for (size_t u = 0; u < units_.size(); ++u) {
      const Unit& unit = units_[u];
      if (shares(unit)) continue;
      if (u > 0) better |= try_out(cut_as(unit, best_.strategy.rules[units_[u - 1].back()].layer));
      if (u + 1 < units_.size())
        better |= try_out(cut_as(unit, best_.strategy.rules[units_[u + 1].front()].layer));
      for (const Strategy& strategy : built_in) {
        Strategy other = best_.strategy;
        for (size_t rule : unit) other.rules[rule].layer.config = strategy.rules[rule].layer.config;
        better |= try_out(std::move(other));
      }
    }
    return better;
  }

  const Network& network_;
  const int ranks_;
  const std::function<Seconds(const Strategy&)>& seconds_;
  const TuneOptions& options_;
  std::vector<Unit> units_;
  std::set<std::string> known_;  // texts of what was tried
  TunedStrategy best_;
};

}  // namespace

Strategy with_all_rules(const Strategy& start, const Network& network) {
  Strategy strategy = start;
  strategy.rules.clear();
  const RuleFinder rules(start);
  for (const auto& node : network.nodes()) {
    if (node.layer->is_source()) continue;
    const Strategy::Rule* own = rules.named(node.name);
    strategy.rules.push_back({.pattern = node.name,
                              .layer = *rules.find(node),
                              .planned_for = own == nullptr ? "" : own->planned_for});
  }
  return strategy;
}

TunedStrategy tune_strategy(const Strategy& start, const Network& network, int ranks,
                            const std::function<Seconds(const Strategy&)>& seconds,
                            const TuneOptions& options) {
  return Tuner(start, network, ranks, seconds, options).run();
}

std::vector<TunedLayer> tuned_layers(const Network& network, const Strategy& before, const Strategy& tuned) {
  std::vector<TunedLayer> layers;
  const RuleFinder rules(before);
  for (const Strategy::Rule& rule : tuned.rules) {
    const NodeIndex node = network.node(rule.pattern);
    const LayerStrategy& old = *rules.find(network.nodes()[node]);
    if (rule.layer != old) layers.push_back({rule.pattern, old, rule.layer});
  }
  return layers;
}

}  // namespace cortado
