#include "cortado/parallel/strategy.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "cortado/base/error.h"

namespace cortado {
namespace {

bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*')
    return fits(pattern.substr(1), name) || (!name.empty() && fits(pattern, name.substr(1)));
  return !name.empty() && pattern[0] == name[0] && fits(pattern.substr(1), name.substr(1));
}

struct NodeShapes {
  std::vector<Shape> inputs, outputs;
};

NodeShapes shapes_of(const Network& network, const Network::Node& node) {
  NodeShapes shapes;
  for (int tensor : node.inputs) shapes.inputs.push_back(network.tensors()[tensor].shape);
  for (int tensor : node.outputs) shapes.outputs.push_back(network.tensors()[tensor].shape);
  return shapes;
}

void check_node(const Network& network, int index, const LayerStrategy& strategy, int ranks,
                const std::string& where) {
  const Network::Node& node = network.nodes()[index];
  try {
    const NodeShapes shapes = shapes_of(network, node);
    const std::string refusal =
        strategy.sync == GradientSync::replicate ? replicate_refusal(network, index) : "";
    if (refusal != "") throw UserError(fmt::format("sync = replicate: {}; use allreduce or owner", refusal));
    check_config(strategy.config, *node.layer, shapes.inputs, shapes.outputs, ranks);
    if (strategy.local_batch_norm && node.layer->type() != "BatchNorm")
      throw UserError(fmt::format("batch_norm = local is for BatchNorm, not {}", node.layer->type()));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: layer '{}': {}", where, node.name, error.what()));
  }
}

// Layers that share a parameter must hold the same slices of it on the same devices.
void check_shared(const Network& network, const NodeStrategies& strategies, const std::string& where) {
  for (const auto& parameter : network.parameters()) {
    for (int user : parameter.users) {
      const LayerStrategy &first = strategies[parameter.owner], &other = strategies[user];
      if (first.config.degrees.c == other.config.degrees.c &&
          first.config.degrees.r == other.config.degrees.r && first.config.devices == other.config.devices &&
          first.sync == other.sync)
        continue;
      throw UserError(fmt::format(
          "{}: layers '{}' and '{}' share parameter '{}': give both the same c, r, devices and sync", where,
          network.nodes()[parameter.owner].name, network.nodes()[user].name, parameter.name));
    }
  }
}

void check_rules_used(const Strategy& strategy, const Network& network, const std::string& where) {
  for (const auto& rule : strategy.rules) {
    const bool used =
        std::ranges::any_of(network.nodes(), [&](const auto& n) { return fits(rule.pattern, n.name); });
    if (!used) {
      throw UserError(fmt::format("{}: '{}' fits no layer of net '{}'; remove it or correct the name", where,
                                  rule.pattern, network.name()));
    }
  }
}

// A plan for other shapes is not the cheapest one here, and may not fit in memory.
void check_planned_for(const Strategy& strategy, const Network& network, const std::string& where) {
  for (const auto& rule : strategy.rules) {
    const int node = network.node(rule.pattern);
    if (rule.planned_for.empty() || node < 0) continue;
    const std::string identity = identity_of(network, node);
    if (identity == rule.planned_for) continue;
    throw UserError(fmt::format(
        "{}: was planned for another net: layer '{}' was '{}', here it is '{}'; plan this net with cortado "
        "plan, or remove \"planned_for\" of all layers",
        where, rule.pattern, rule.planned_for, identity));
  }
}

}  // namespace

namespace {

constexpr std::pair<GradientSync, std::string_view> sync_names[] = {{GradientSync::allreduce, "allreduce"},
                                                                    {GradientSync::owner, "owner"},
                                                                    {GradientSync::replicate, "replicate"}};

}  // namespace

std::string_view name_of(GradientSync sync) {
  return std::ranges::find(sync_names, sync, &std::pair<GradientSync, std::string_view>::first)->second;
}

std::optional<GradientSync> gradient_sync_of(std::string_view name) {
  for (const auto& [sync, known] : sync_names)
    if (known == name) return sync;
  return std::nullopt;
}

void set_sync(Strategy& strategy, const Network& network, const std::string& pattern, GradientSync sync) {
  bool found = false;
  for (const auto& node : network.nodes()) {
    if (node.layer->is_source() || !fits(pattern, node.name)) continue;
    found = true;
    const auto own = std::ranges::find(strategy.rules, node.name, &Strategy::Rule::pattern);
    if (own != strategy.rules.end()) {
      own->layer.sync = sync;
    } else if (const LayerStrategy* layer = strategy.find(node.name)) {
      Strategy::Rule rule{.pattern = node.name, .layer = *layer, .planned_for = {}};
      rule.layer.sync = sync;
      strategy.rules.push_back(std::move(rule));
    }
  }
  if (!found) throw UserError(fmt::format("'{}' fits no layer of net '{}'", pattern, network.name()));
}

std::string replicate_refusal(const Network& network, int node) {
  const Network::Node& of = network.nodes()[node];
  if (of.parameters.empty()) return "";
  if (!of.layer->splits_backward())
    return fmt::format("the gradients of a {} layer's parameters are not computed apart", of.layer->type());
  for (int parameter : of.parameters) {
    const Network::Parameter& info = network.parameters()[parameter];
    if (info.users.size() > 1) return fmt::format("parameter '{}' is shared with another layer", info.name);
  }
  for (double weight : of.loss_weights)
    if (weight != 0) return "the layer's output is a loss";
  return "";
}

std::optional<ReplicateBytes> replicate_bytes(const Network& network, int node, const Degrees& degrees) {
  const Network::Node& of = network.nodes()[node];
  const bool wanted = std::ranges::any_of(
      of.parameters, [&](int parameter) { return network.parameters()[parameter].wants_gradient; });
  if (!wanted || degrees.n * degrees.d * degrees.h * degrees.w == 1 ||
      !replicate_refusal(network, node).empty())
    return std::nullopt;
  const auto size = static_cast<int64_t>(sizeof(float));
  int64_t parameters = 0;
  for (int parameter : of.parameters) parameters += network.parameters()[parameter].spec.shape.size();
  const auto floats = [&](int tensor) { return network.tensors()[tensor].shape.size(); };
  return ReplicateBytes{
      .summed = {size * parameters / (degrees.c * degrees.r)},
      .gathered = {size * (floats(of.inputs[0]) / degrees.r + floats(of.outputs[0]) / degrees.c)}};
}

std::string identity_of(const Network& network, int node) {
  const auto& of = network.nodes()[node];
  std::string text(of.layer->type());
  for (int tensor : of.outputs) text += " " + network.tensors()[tensor].shape.text();
  for (int p : of.parameters) {
    const ParameterSpec& spec = network.parameters()[p].spec;
    text += fmt::format(", {} {}", spec.role, spec.shape.text());
  }
  return text;
}

const LayerStrategy* Strategy::find(std::string_view layer) const {
  for (const Rule& rule : rules)
    if (rule.pattern == layer) return &rule.layer;
  for (const Rule& rule : rules)
    if (fits(rule.pattern, layer)) return &rule.layer;
  return nullptr;
}

NodeStrategies resolve(const Strategy& strategy, const Network& network, int ranks,
                       const std::string& where) {
  if (strategy.ranks > ranks) {
    throw UserError(fmt::format("{}: is for {} ranks, the job has {}; start it with --ranks {}", where,
                                strategy.ranks, ranks, strategy.ranks));
  }
  if (!strategy.net.empty() && strategy.net != network.name()) {
    throw UserError(fmt::format("{}: is for net '{}', this is net '{}'; plan this one, or remove \"net\"",
                                where, strategy.net, network.name()));
  }
  check_rules_used(strategy, network, where);
  check_planned_for(strategy, network, where);
  NodeStrategies strategies;
  for (size_t n = 0; n < network.nodes().size(); ++n) {
    const Network::Node& node = network.nodes()[n];
    if (node.layer->is_source()) {
      strategies.emplace_back();
      continue;
    }
    const LayerStrategy* layer = strategy.find(node.name);
    if (!layer) {
      throw UserError(
          fmt::format("{}: layer '{}' ({}) has no configuration; name it, or add a rule \"*\" for all "
                      "that are not named",
                      where, node.name, node.where.text()));
    }
    check_node(network, static_cast<int>(n), *layer, ranks, where);
    strategies.push_back(*layer);
  }
  check_shared(network, strategies, where);
  return strategies;
}

NodeStrategies resolve_beside(const Network& network, const Network& first, const NodeStrategies& strategies,
                              int ranks) {
  const Strategy by_sample = built_in_strategy("data", network, ranks);
  NodeStrategies beside;
  for (size_t n = 0; n < network.nodes().size(); ++n) {
    const Network::Node& node = network.nodes()[n];
    if (node.layer->is_source()) {
      beside.emplace_back();
      continue;
    }
    const int same = first.node(node.name);
    const bool found = same >= 0 && !first.nodes()[same].layer->is_source();
    LayerStrategy layer = found ? strategies[same] : *by_sample.find(node.name);
    const NodeShapes shapes = shapes_of(network, node);
    layer.config = clamped(layer.config, *node.layer, shapes.inputs, shapes.outputs);
    check_node(network, static_cast<int>(n), layer, ranks, network.name());
    beside.push_back(std::move(layer));
  }
  return beside;
}

}  // namespace cortado
