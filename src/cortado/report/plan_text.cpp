#include <fmt/format.h>

#include "cortado/report/plan_report.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using plan::gibibytes;
using plan::Plan;
using plan::PlannedGroup;

std::string mebibytes(Bytes bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes.count) / (1 << 20));
}

std::string cut_text(const LayerStrategy& strategy) {
  return fmt::format("{}{}", strategy.config.text(), facts_of(strategy.sync).after_cut);
}

std::string layers_text(const Network& network, const Plan& plan) {
  using Align = Table::Align;
  Table table({{"layers", Align::left},
               {"cut", Align::left},
               {"compute ms"},
               {"sync ms"},
               {"transfer ms"},
               {"sent MiB"},
               {"held MiB"},
               {"next best", Align::left},
               {plan.limited ? "adds at least ms" : "adds ms"}});
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const PlannedGroup& group = plan.groups[g];
    const plan::Alternative& other = plan.runners_up[g];
    const bool any = std::isfinite(other.adds.count);
    table.add({name_of(network, group), cut_text(group.strategy), milliseconds(compute_of(group)),
               milliseconds(sync_of(group)), milliseconds(transfer_of(group)), mebibytes(group.bytes),
               mebibytes(group.memory), any ? cut_text(other.strategy) : "",
               any ? (other.bound ? "at least " : "") + milliseconds(other.adds) : ""});
  }
  table.add_rule();
  table.add({"iteration: " + milliseconds(plan.seconds) + " ms", "", milliseconds(sum_of(plan, compute_of)),
             milliseconds(sum_of(plan, sync_of)), milliseconds(sum_of(plan, transfer_of)),
             mebibytes(plan.bytes), mebibytes(plan.memory), "", ""});
  return table.text();
}

std::string baselines_text(const Plan& plan) {
  std::string text;
  for (const plan::Assignment& baseline : plan.baselines) {
    text += fmt::format("{:>12}: ", baseline.name);
    if (std::isinf(baseline.seconds.count)) {
      text += "impossible for this net\n";
      continue;
    }
    text += fmt::format("{} ms, {:.2f} times as long", milliseconds(baseline.seconds),
                        baseline.seconds.count / plan.seconds.count);
    if (!plan.fits(baseline.memory)) text += ", does not fit: needs " + gibibytes(baseline.memory);
    text += '\n';
  }
  return text;
}

std::string memory_text(const Plan& plan) {
  std::string text = fmt::format("memory: at most {} on a device", gibibytes(plan.memory));
  if (plan.memory_limit.count > 0) text += " of " + gibibytes(plan.memory_limit);
  if (plan.limited)
    text += fmt::format("; without that limit an iteration would take {} ms", milliseconds(plan.unlimited));
  if (!plan.recomputation.empty()) text += fmt::format("\nrecomputation: {}", plan.recomputation);
  return text + '\n';
}

std::string frontier_text(const Plan& plan) {
  Table table({{"time and memory", Table::Align::left}, {"iteration ms"}, {"a device"}});
  for (const plan::Tradeoff& point : plan.frontier)
    table.add({point.chosen              ? "this plan"
               : plan.fits(point.memory) ? ""
                                         : "does not fit",
               milliseconds(point.seconds), gibibytes(point.memory)});
  return table.text() + '\n';
}

std::string judged_text(const plan::Judged& judged) {
  return fmt::format(
      "simulated: {} ms, the least of {} strategies; the cheapest by costs takes {} ms; no {} takes less "
      "than "
      "{} ms, which this is at most {} above\n",
      milliseconds(judged.seconds), judged.strategies, milliseconds(judged.cheapest),
      judged.bounds_all ? "strategy" : "choice of these configurations", milliseconds(judged.lower_bound),
      percent_above(judged.seconds, judged.lower_bound));
}

std::string changed_text(const Network& network, const char* what,
                         const std::vector<plan::ChangedLayer>& layers) {
  Table table({{what, Table::Align::left}, {"cut", Table::Align::left}, {"before", Table::Align::left}});
  for (const plan::ChangedLayer& layer : layers) {
    const bool first = !network.nodes()[network.node(layer.name)].parameters.empty();
    if (first) table.add({layer.name, cut_text(layer.after), cut_text(layer.before)});
  }
  return table.text() + '\n';
}

std::string cuts_text(const Network& network, const plan::Judged& judged) {
  std::string text;
  if (!judged.cuts.empty())
    text = fmt::format("cut by simulations: {} ms less. The table above is of the plan without\n",
                       milliseconds(judged.before_cuts - judged.seconds)) +
           changed_text(network, "layers that are cut otherwise", judged.cuts);
  if (judged.cuts_bound.count == 0 || judged.seconds < judged.cuts_bound) return text;
  if (judged.seconds == judged.cuts_bound)
    return text +
           "no other cuts of the layers over the first devices take less: all were simulated or bounded\n";
  return text + fmt::format(
                    "no cuts of the layers over the first devices take less than {} ms, which this is at "
                    "most {} above\n",
                    milliseconds(judged.cuts_bound), percent_above(judged.seconds, judged.cuts_bound));
}

std::string side_by_side_text(const Network& network, const plan::SideBySide& found, Seconds seconds) {
  if (found.layers.empty() && found.of_sets == 0) return "";
  if (found.layers.empty())
    return fmt::format("branches side by side: gain too little, by {} strategies simulated\n",
                       found.strategies);
  return fmt::format(
             "branches side by side: {} ms in place of {} ms; {} of {} sets of branches, by {} strategies "
             "simulated. The table above is of the plan without\n",
             milliseconds(seconds), milliseconds(found.before), found.sets, found.of_sets, found.strategies) +
         changed_text(network, "layers that lie elsewhere", found.layers);
}

std::string recompute_text(const Plan& plan) {
  Table table({{"computed again", Table::Align::left},
               {"simulated ms"},
               {"added ms"},
               {"at least ms"},
               {"a device"}});
  for (const plan::RecomputeTradeoff& point : plan.recompute_frontier)
    table.add({fmt::format("{} {}", point.layers, point.layers == 1 ? "layer" : "layers"),
               milliseconds(point.iteration), milliseconds(point.added), milliseconds(point.least_added),
               gibibytes(point.memory)});
  return table.text() + '\n';
}

}  // namespace

Seconds compute_of(const PlannedGroup& group) { return group.compute.total() + group.update; }
Seconds sync_of(const PlannedGroup& group) { return group.sync; }
Seconds transfer_of(const PlannedGroup& group) { return group.transfer + group.sums; }

Seconds sum_of(const plan::Assignment& assignment, Seconds (*part)(const PlannedGroup&)) {
  Seconds sum;
  for (const PlannedGroup& group : assignment.groups) sum += part(group);
  return sum;
}

std::string name_of(const Network& network, const PlannedGroup& group) {
  std::string name;
  for (NodeIndex node : group.nodes) name += (name.empty() ? "" : " + ") + network.nodes()[node].name;
  return name;
}

std::string verdict_of(const Plan& plan) {
  const char* which = plan.limited ? " of what fits" : "";
  if (plan.proven) return fmt::format("optimal{}", which);
  return fmt::format("not proven optimal: at most {} above the optimum{}",
                     percent_above(plan.seconds, plan.lower_bound), which);
}

std::string percent_above(Seconds seconds, Seconds bound) {
  const double percent = 100 * (seconds.count / bound.count - 1);
  return percent < 99.5 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string plan_text(const PlanReport& report) {
  const Plan& plan = report.plan;
  const auto& eliminations = plan.search.eliminations;
  return layers_text(report.network, plan) + '\n' + baselines_text(plan) + memory_text(plan) +
         (plan.judged ? judged_text(*plan.judged) + cuts_text(report.network, *plan.judged) : "") +
         (plan.side_by_side ? side_by_side_text(report.network, *plan.side_by_side, plan.judged->seconds)
                            : "") +
         (plan.frontier.empty() ? "" : '\n' + frontier_text(plan)) +
         (plan.recompute_frontier.empty() ? "" : '\n' + recompute_text(plan)) +
         fmt::format(
             "{}: {} configurations priced in {:.1f} ms, searched in {:.1f} ms ({} leaves, {} nodes, {} "
             "edges "
             "and {} vertices of more neighbours eliminated)\n",
             verdict_of(plan), plan.candidates, 1e3 * plan.pricing_took.count,
             1e3 * plan.search.seconds.count, eliminations.leaves, eliminations.nodes, eliminations.edges,
             eliminations.general);
}

}  // namespace cortado
