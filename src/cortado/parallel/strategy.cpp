#include "cortado/parallel/strategy.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "cortado/base/error.h"
#include "cortado/parallel/config_fit.h"

namespace cortado {
namespace {

// Where letters do not fit, the last * takes one more of them; the earlier ones need not.
bool fits(std::string_view pattern, std::string_view name) {
  constexpr size_t none = std::string_view::npos;
  size_t p = 0, n = 0, star = none, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != none) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == none;
}

bool is_pattern(std::string_view text) { return text.find('*') != std::string_view::npos; }

struct NodeShapes {
  std::vector<Shape> inputs, outputs;
};

NodeShapes shapes_of(const Network& network, const Network::Node& node) {
  return {network.shapes_of(node.inputs), network.shapes_of(node.outputs)};
}

// Clamps the configuration to what the layer's shapes allow.
void clamp(const Network& network, const Network::Node& node, ParallelConfig& config) {
  const NodeShapes shapes = shapes_of(network, node);
  config = clamped(config, *node.layer, shapes.inputs, shapes.outputs);
}

void check_node(const Network& network, NodeIndex index, const LayerStrategy& strategy, int ranks,
                const std::string& where) {
  const Network::Node& node = network.nodes()[index];
  try {
    const NodeShapes shapes = shapes_of(network, node);
    const std::string refusal = sync_refusal(network, index, strategy.sync);
    if (refusal != "") throw UserError(fmt::format("sync = replicate: {}; use allreduce or owner", refusal));
    check_config(strategy.config, *node.layer, shapes.inputs, shapes.outputs, ranks);
    if (strategy.config.degrees.c * strategy.config.degrees.r > 1 && !has_slices(network, node)) {
      throw UserError(
          "it shares a parameter in another shape (share_mode: PERMISSIVE), so it cannot be cut along c or "
          "r; "
          "cut it along n, d, h or w");
    }
    if (strategy.local_batch_norm && node.layer->type() != "BatchNorm")
      throw UserError(fmt::format("batch_norm = local is for BatchNorm, not {}", node.layer->type()));
    if (strategy.precision == Precision::bf16 && network.precision() != Precision::bf16)
      throw UserError(
          "precision = bf16: the net computes in f32; give it precision bf16, or leave that out of the rule");
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: layer '{}': {}", where, node.name, error.what()));
  }
}

// Layers that share a parameter must hold the same slices of it on the same devices.
void check_shared(const Network& network, const NodeStrategies& strategies, const std::string& where) {
  for (const auto& parameter : network.parameters()) {
    for (NodeIndex user : parameter.users) {
      const LayerStrategy &first = strategies[parameter.declared_by], &other = strategies[user];
      if (first.config.degrees.c == other.config.degrees.c &&
          first.config.degrees.r == other.config.degrees.r && first.config.devices == other.config.devices &&
          first.sync == other.sync)
        continue;
      throw UserError(fmt::format(
          "{}: layers '{}' and '{}' share parameter '{}': give both the same c, r, devices and sync", where,
          network.nodes()[parameter.declared_by].name, network.nodes()[user].name, parameter.name));
    }
  }
}

void check_rules_used(const Strategy& strategy, const Network& network, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Network::Node& node : network.nodes()) names.push_back(node.name);
  std::ranges::sort(names);
  // Those that begin with the letters before a pattern's first * stand together.
  auto fits_one = [&](std::string_view pattern) {
    const std::string_view start = pattern.substr(0, pattern.find('*'));
    for (auto at = std::ranges::lower_bound(names, start); at != names.end() && at->starts_with(start); ++at)
      if (fits(pattern, *at)) return true;
    return false;
  };
  for (const auto& rule : strategy.rules) {
    if (!fits_one(rule.pattern)) {
      throw UserError(fmt::format("{}: '{}' fits no layer of net '{}'; remove it or correct the name", where,
                                  rule.pattern, network.name()));
    }
  }
}

// A plan for other shapes is not the cheapest one here, and may not fit in memory.
void check_planned_for(const Strategy& strategy, const Network& network, const std::string& where) {
  for (const auto& rule : strategy.rules) {
    const NodeIndex node = network.node(rule.pattern);
    if (rule.planned_for.empty() || !node) continue;
    const std::string identity = identity_of(network, node);
    if (identity == rule.planned_for) continue;
    throw UserError(fmt::format(
        "{}: was planned for another net: layer '{}' was '{}', here it is '{}'; plan this net with cortado "
        "plan, or remove \"planned_for\" of all layers",
        where, rule.pattern, rule.planned_for, identity));
  }
}

}  // namespace

Strategy spread(Strategy strategy) {
  for (Strategy::Rule& rule : strategy.rules)
    rule.layer.config = spread(std::move(rule.layer.config), strategy.ranks);
  return strategy;
}

void set_sync(Strategy& strategy, const Network& network, const std::string& pattern, GradientSync sync) {
  bool found = false;
  const Strategy before = strategy;
  const RuleFinder rules(before);
  for (const auto& node : network.nodes()) {
    if (node.layer->is_source() || !fits(pattern, node.name)) continue;
    found = true;
    if (const Strategy::Rule* own = rules.named(node.name)) {
      strategy.rules[own - before.rules.data()].layer.sync = sync;
    } else if (const LayerStrategy* layer = rules.find(node)) {
      Strategy::Rule rule{.pattern = node.name, .layer = *layer, .planned_for = {}};
      rule.layer.sync = sync;
      strategy.rules.push_back(std::move(rule));
    }
  }
  if (!found) throw UserError(fmt::format("'{}' fits no layer of net '{}'", pattern, network.name()));
}

void set_recompute(Strategy& strategy, const Network& network, const IndexedVector<NodeIndex, bool>& again) {
  const Strategy before = strategy;
  const RuleFinder rules(before);
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    const LayerStrategy* layer = node.layer->is_source() ? nullptr : rules.find(node);
    if (!layer) continue;
    if (const Strategy::Rule* own = rules.named(node.name)) {
      strategy.rules[static_cast<size_t>(own - before.rules.data())].layer.recompute = again[n];
    } else if (layer->recompute != again[n]) {
      Strategy::Rule rule{.pattern = node.name, .layer = *layer, .planned_for = {}};
      rule.layer.recompute = again[n];
      strategy.rules.push_back(std::move(rule));
    }
  }
}

IndexedVector<NodeIndex, bool> recompute_by_segments(const Network& network) {
  IndexedVector<NodeIndex, bool> again(network.nodes().size(), false);
  const auto size = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(network.nodes().size()))));
  const auto segment = [&](NodeIndex node) { return node.value() / size; };
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    again[n] = !node.layer->is_source() && std::ranges::all_of(node.outputs, [&](TensorIndex output) {
      const auto& consumers = network.tensors()[output].consumers;
      return !consumers.empty() && std::ranges::all_of(consumers, [&](const auto& consumer) {
        return segment(consumer) == segment(n);
      });
    });
  }
  return again;
}

std::string sync_refusal(const Network& network, NodeIndex node, GradientSync sync) {
  const Network::Node& of = network.nodes()[node];
  if (!facts_of(sync).replicates || of.parameters.empty()) return "";
  if (!of.layer->splits_backward())
    return fmt::format("the gradients of a {} layer's parameters are not computed apart", of.layer->type());
  for (ParameterIndex parameter : of.parameters) {
    const Network::Parameter& info = network.parameters()[parameter];
    if (info.users.size() > 1) return fmt::format("parameter '{}' is shared with another layer", info.name);
  }
  for (double weight : of.loss_weights)
    if (weight != 0) return "the layer's output is a loss";
  return "";
}

bool sums_gradients(const Network& network, NodeIndex node, const Degrees& degrees) {
  return degrees.replicas() > 1 &&
         std::ranges::any_of(network.nodes()[node].parameters, [&](ParameterIndex parameter) {
           return network.parameters()[parameter].wants_gradient;
         });
}

std::optional<ReplicateBytes> replicate_bytes(const Network& network, NodeIndex node,
                                              const Degrees& degrees) {
  const Network::Node& of = network.nodes()[node];
  if (!sums_gradients(network, node, degrees) ||
      !sync_refusal(network, node, GradientSync::replicate).empty())
    return std::nullopt;
  const int64_t size = size_of(network.tensors()[of.inputs[0]].type);
  int64_t parameters = 0;
  for (ParameterIndex parameter : of.parameters)
    parameters += network.parameters()[parameter].spec.shape.size();
  const auto floats = [&](TensorIndex tensor) { return network.tensors()[tensor].shape.size(); };
  return ReplicateBytes{
      .summed = {size * parameters / (degrees.c * degrees.r)},
      .gathered = {size * (floats(of.inputs[0]) / degrees.r + floats(of.outputs[0]) / degrees.c)}};
}

bool has_slices(const Network& network, const Network::Node& node) {
  return std::ranges::all_of(
      node.parameters, [&](ParameterIndex parameter) { return network.parameters()[parameter].one_shape; });
}

std::string identity_of(const Network& network, NodeIndex node) {
  const auto& of = network.nodes()[node];
  std::string text(of.layer->type());
  for (TensorIndex tensor : of.outputs) text += " " + network.tensors()[tensor].shape.text();
  for (ParameterIndex p : of.parameters) {
    const ParameterSpec& spec = network.parameters()[p].spec;
    text += fmt::format(", {} {}", spec.role, spec.shape.text());
  }
  return text;
}

const LayerStrategy* Strategy::find(std::string_view layer) const { return RuleFinder(*this).find(layer); }

RuleFinder::RuleFinder(const Strategy& strategy) {
  for (const Strategy::Rule& rule : strategy.rules) {
    named_.emplace(rule.pattern, &rule);
    if (is_pattern(rule.pattern)) patterns_.push_back(&rule);
  }
}

const Strategy::Rule* RuleFinder::named(std::string_view layer) const {
  const auto found = named_.find(layer);
  return found == named_.end() ? nullptr : found->second;
}

const LayerStrategy* RuleFinder::find(std::string_view layer) const {
  if (const Strategy::Rule* rule = named(layer)) return &rule->layer;
  for (const Strategy::Rule* rule : patterns_)
    if (fits(rule->pattern, layer)) return &rule->layer;
  return nullptr;
}

const LayerStrategy* RuleFinder::find(const Network::Node& node) const {
  const std::string& layer = node.part_of.empty() ? node.name : node.part_of;
  for (const std::string* name : {&node.name, &layer, &node.file_name})
    if (const Strategy::Rule* rule = named(*name)) return &rule->layer;
  return find(layer);
}

NodeStrategies resolve(const Strategy& strategy, const Network& network, int ranks,
                       const std::string& where) {
  if (strategy.ranks > ranks) {
    throw UserError(fmt::format("{}: is for {} ranks, the job has {}; start it with {} ranks", where,
                                strategy.ranks, ranks, strategy.ranks));
  }
  if (!strategy.net.empty() && strategy.net != network.name()) {
    throw UserError(fmt::format("{}: is for net '{}', this is net '{}'; plan this one, or remove \"net\"",
                                where, strategy.net, network.name()));
  }
  check_rules_used(strategy, network, where);
  check_planned_for(strategy, network, where);
  NodeStrategies strategies;
  const RuleFinder rules(strategy);
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    if (node.layer->is_source()) {
      strategies.emplace_back();
      continue;
    }
    const LayerStrategy* layer = rules.find(node);
    if (!layer) {
      throw UserError(
          fmt::format("{}: layer '{}' ({}) has no configuration; name it, or add a rule \"*\" for all "
                      "that are not named",
                      where, node.name, node.where.text()));
    }
    strategies.push_back(*layer);
    if (!node.part_of.empty()) clamp(network, node, strategies.back().config);
    check_node(network, n, strategies.back(), ranks, where);
  }
  check_shared(network, strategies, where);
  return strategies;
}

namespace {

// Where what a layer reads is cut in space alone, or in samples, too, the layer is cut the same way, so that
// no rank needs whole samples.
void follow_space(const Network& network, const Network::Node& node, const NodeStrategies& strategies,
                  ParallelConfig& config) {
  if (node.inputs.empty() || !node.parameters.empty()) return;
  const ParallelConfig& read = strategies[network.tensors()[node.inputs[0]].producer].config;
  const Degrees& degrees = read.degrees;
  if (degrees.d * degrees.h * degrees.w > 1 && degrees.c * degrees.r == 1) config = read;
}

}  // namespace

NodeStrategies resolve_beside(const Network& network, const Network& first, const NodeStrategies& strategies,
                              int ranks) {
  const Strategy by_sample = built_in_strategy("data", network, ranks);
  const RuleFinder rules(by_sample);
  NodeStrategies beside;
  for (NodeIndex n : indices(network.nodes())) {
    const Network::Node& node = network.nodes()[n];
    if (node.layer->is_source()) {
      beside.emplace_back();
      continue;
    }
    const NodeIndex same = first.node(node.name);
    const bool found = same && !first.nodes()[same].layer->is_source();
    LayerStrategy layer = found ? strategies[same] : *rules.find(node.name);
    if (!found) follow_space(network, node, beside, layer.config);
    clamp(network, node, layer.config);
    check_node(network, n, layer, ranks, network.name());
    beside.push_back(std::move(layer));
  }
  return beside;
}

}  // namespace cortado
