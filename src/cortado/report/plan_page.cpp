#include <cmath>
#include <fmt/format.h>

#include "cortado/report/advice.h"
#include "cortado/report/plan_page_parts.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using plan::Plan;

std::string speedup_tile(const Plan& plan) {
  for (const plan::Assignment& baseline : plan.baselines) {
    if (baseline.name != "data" || std::isinf(baseline.seconds.count)) continue;
    return page_tile(fmt::format("{:.2f}", baseline.seconds.count / plan.seconds.count), "times",
                     "as fast as by samples alone");
  }
  return "";
}

std::string head(const PlanPage& page) {
  const Plan& plan = page.plan();
  const DeviceGraph& machine = page.report.machine;
  const int64_t batch = batch_of(page.report.network);
  std::string text = fmt::format(
      "<header>\n{}<p class=\"lead\">cut over {} {} of machine <b>{}</b>, batch {}: {}</p>\n"
      "<ul class=\"tiles\">\n",
      page_title(page.report.network.name(), plan_advice(plan, machine.devices(), page.report.strategy_file)),
      machine.devices(), machine.devices() == 1 ? "device" : "devices", escaped(machine.machine().name),
      batch, verdict_of(plan));
  text += page_tile(short_milliseconds(plan.seconds), "ms", "an iteration");
  if (batch > 0)
    text += page_tile(short_number(static_cast<double>(batch) / plan.seconds.count), "/ s", "samples");
  text += speedup_tile(plan);
  text += page_tile(short_bytes(static_cast<double>(plan.bytes.count)), "", "sent in an iteration, by all");
  text +=
      page_tile(short_bytes(static_cast<double>(plan.memory.count)), "",
                plan.memory_limit.count > 0
                    ? "at most on a device, of " + short_bytes(static_cast<double>(plan.memory_limit.count))
                    : "at most on a device");
  text += "</ul>\n";
  if (plan.limited) {
    text += fmt::format(
        "<p class=\"note\">The memory of the devices limits this plan: without the limit an "
        "iteration would take {} ms.</p>\n",
        short_milliseconds(plan.unlimited));
  }
  return text + "</header>\n";
}

// Returns the end of the page: what the figures mean and how they were found.
std::string foot(const PlanReport& report) {
  const Plan& plan = report.plan;
  const auto& eliminations = plan.search.eliminations;
  const std::string meaning = fmt::format(
      "<p>An iteration is counted as the sum over layers of computing, sums of gradients and transfers, each "
      "as long as its slowest device or link takes. In training, messages are hidden under computing, so it "
      "may be shorter (<code>cortado simulate</code> says how much). The costs are the machine's, true to "
      "about a tenth at "
      "best; <code>--strategy auto</code> plans by costs that it measures where it trains.</p>\n"
      "<details><summary>How the plan was found</summary><p>{} configurations were priced in {} ms and "
      "searched in {} ms: {} leaves, {} nodes, {} edges and {} vertices of more neighbours eliminated.</p>"
      "</details>\n",
      grouped(plan.candidates), short_milliseconds(plan.pricing_took),
      short_milliseconds(plan.search.seconds), eliminations.leaves, eliminations.nodes, eliminations.edges,
      eliminations.general);
  return page_foot(meaning, report.origin);
}

}  // namespace

std::vector<PageUnit> units_of(const PlanReport& report) {
  const auto& groups = report.plan.groups;
  std::vector<int> readers(groups.size());
  for (const plan::PlannedGroup& group : groups)
    for (const auto& input : group.inputs) ++readers[static_cast<size_t>(input.from)];
  std::vector<PageUnit> units;
  std::vector<size_t> unit_of(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& node = report.network.nodes()[groups[g].nodes[0]];
    const auto shape = [&](TensorIndex tensor) { return report.network.tensors()[tensor].shape; };
    const bool follows = groups[g].inputs.size() == 1 && groups[g].inputs[0].bytes.count == 0 &&
                         node.inputs.size() == 1 && node.outputs.size() == 1 &&
                         shape(node.inputs[0]) == shape(node.outputs[0]) && !node.layer->splits_backward() &&
                         node.layer->type() != "Pooling";
    const size_t before = groups[g].inputs.empty() ? 0 : static_cast<size_t>(groups[g].inputs[0].from);
    if (follows && readers[before] == 1 && groups[before].strategy.config == groups[g].strategy.config) {
      unit_of[g] = unit_of[before];
      units[unit_of[g]].groups.push_back(g);
    } else {
      unit_of[g] = units.size();
      units.push_back({{g}});
    }
  }
  return units;
}

std::string PlanPage::first_name(const plan::PlannedGroup& group) const {
  return escaped(report.network.nodes()[group.nodes[0]].name);
}

std::string PlanPage::name(const plan::PlannedGroup& group) const {
  return escaped(name_of(report.network, group));
}

std::string PlanPage::name(const PageUnit& unit) const {
  std::string text;
  for (size_t g : unit.groups) text += (text.empty() ? "" : " + ") + name(plan().groups[g]);
  return text;
}

std::string PlanPage::chip(const ParallelConfig& config) const {
  const bool idle = static_cast<int>(config.devices.size()) < report.machine.devices();
  return fmt::format("<span class=\"chip {}{}\">{}</span>", colours.css_class(config.degrees),
                     idle ? " idle" : "", config.text());
}

std::string plan_page(const PlanReport& report) {
  const PlanPage page{report, ConfigColours(report.plan), units_of(report)};
  return page_head(fmt::format("{} on {} devices", report.network.name(), report.machine.devices()),
                   plan_page_style + page.colours.style()) +
         head(page) + "<main>\n" + totals_part(page) + graph_part(page) + bars_part(page) +
         devices_part(page) + frontier_part(page) + layers_part(page) + "</main>\n" + foot(report);
}

}  // namespace cortado
