#include <nlohmann/json.hpp>

#include "cortado/report/plan_report.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

Json degrees_json(const Degrees& degrees) {
  Json json = Json::object();
  auto add = [&](const char* name, int degree) {
    if (degree > 1) json[name] = degree;
  };
  add("n", degrees.n), add("c", degrees.c), add("d", degrees.d), add("h", degrees.h), add("w", degrees.w);
  add("r", degrees.r);
  return json;
}

// Returns null for infinity, which JSON lacks.
Json number_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json alternative_json(const plan::Alternative& other) {
  if (std::isinf(other.adds.count)) return {};
  return {{"config", degrees_json(other.strategy.config.degrees)},
          {"devices", other.strategy.config.devices},
          {"sync", std::string(name_of(other.strategy.sync))},
          {"adds_seconds", other.adds.count}};
}

Json layer_json(const PlanReport& report, size_t g) {
  const plan::PlannedGroup& group = report.plan.groups[g];
  Json followers = Json::array();
  for (size_t i = 1; i < group.nodes.size(); ++i)
    followers.push_back(report.network.nodes()[group.nodes[i]].name);
  Json json{{"name", report.network.nodes()[group.nodes[0]].name},
            {"with", followers},
            {"config", degrees_json(group.strategy.config.degrees)},
            {"devices", group.strategy.config.devices},
            {"sync", std::string(name_of(group.strategy.sync))},
            {"compute_seconds", compute_of(group).count},
            {"sync_seconds", sync_of(group).count},
            {"transfer_seconds", transfer_of(group).count},
            {"bytes", group.bytes.count},
            {"memory_bytes", group.memory.count},
            {"runner_up", alternative_json(report.plan.runners_up[g])},
            {"by_sample", alternative_json(report.plan.by_sample[g])}};
  if (!group.strategy.config.weights.empty()) json["weights"] = group.strategy.config.weights;
  return json;
}

Json changed_json(const std::vector<plan::ChangedLayer>& layers) {
  Json json = Json::array();
  for (const plan::ChangedLayer& layer : layers)
    json.push_back({{"name", layer.name},
                    {"config", degrees_json(layer.after.config.degrees)},
                    {"devices", layer.after.config.devices}});
  return json;
}

Json side_by_side_json(const plan::SideBySide& found) {
  return {{"before_seconds", found.before.count},
          {"sets", found.sets},
          {"of_sets", found.of_sets},
          {"strategies", found.strategies},
          {"layers", changed_json(found.layers)}};
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  const plan::Plan& plan = report.plan;
  Json layers = Json::array(), baselines = Json::object();
  for (size_t g = 0; g < plan.groups.size(); ++g) layers.push_back(layer_json(report, g));
  for (const plan::Assignment& baseline : plan.baselines)
    baselines[baseline.name] = {{"cost_seconds", number_or_null(baseline.seconds.count)},
                                {"bytes_per_iteration", baseline.bytes.count},
                                {"memory_bytes", baseline.memory.count},
                                {"fits", plan.fits(baseline.memory)}};
  Json json{{"net", report.network.name()},
            {"machine", report.machine.machine().name},
            {"devices", report.machine.devices()},
            {"batch", batch_of(report.network)},
            {"cost_seconds", plan.seconds.count},
            {"lower_bound_seconds", plan.lower_bound.count},
            {"search_seconds", plan.search.seconds.count},
            {"pricing_seconds", plan.pricing_took.count},
            {"optimal", plan.proven},
            {"limited_by_memory", plan.limited},
            {"layers", layers},
            {"baselines", baselines},
            {"bytes_per_iteration", plan.bytes.count},
            {"memory_bytes", plan.memory.count},
            {"memory_limit_bytes", plan.memory_limit.count > 0 ? Json(plan.memory_limit.count) : Json()}};
  for (const plan::Tradeoff& point : plan.frontier)
    json["frontier"].push_back({{"cost_seconds", point.seconds.count},
                                {"memory_bytes", point.memory.count},
                                {"fits", plan.fits(point.memory)},
                                {"chosen", point.chosen}});
  if (plan.judged)
    json["simulated"] = {{"seconds", plan.judged->seconds.count},
                         {"cheapest_seconds", plan.judged->cheapest.count},
                         {"lower_bound_seconds", plan.judged->lower_bound.count},
                         {"strategies", plan.judged->strategies},
                         {"cuts", changed_json(plan.judged->cuts)},
                         {"cuts_bound_seconds", plan.judged->cuts_bound.count}};
  if (plan.side_by_side) json["side_by_side"] = side_by_side_json(*plan.side_by_side);
  for (const plan::RecomputeTradeoff& point : plan.recompute_frontier)
    json["recompute_frontier"].push_back({{"memory_bytes", point.memory.count},
                                          {"simulated_seconds", point.iteration.count},
                                          {"added_seconds", point.added.count},
                                          {"least_added_seconds", point.least_added.count},
                                          {"layers", point.layers}});
  return json.dump(2) + "\n";
}

}  // namespace cortado
