#include <cmath>
#include <fmt/format.h>

#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

// Returns a cell: what an iteration would take longer if the layer were cut in this way.
std::string added(const plan::Plan& plan, const plan::Alternative& other) {
  return (plan.limited || other.bound ? "\u2265 +" : "+") + short_milliseconds(other.adds) + " ms";
}

std::string next_best(const plan::Plan& plan, const plan::Alternative& other) {
  if (std::isinf(other.adds.count)) return "none";
  return fmt::format("<b>{}{}</b> {}", other.strategy.config.text(), facts_of(other.strategy.sync).after_cut,
                     added(plan, other));
}

std::string by_sample(const plan::Plan& plan, const plan::PlannedGroup& group,
                      const plan::Alternative& other) {
  if (other.strategy.config == group.strategy.config) return "is cut so";
  if (std::isinf(other.adds.count)) return "impossible";
  return added(plan, other);
}

std::string row(const PlanPage& page, size_t g) {
  const plan::Plan& plan = page.plan();
  const plan::PlannedGroup& group = plan.groups[g];
  return fmt::format("<tr id=\"layer-{}\"><th scope=\"row\">{}</th>", g, page.name(group)) +
         table_cell("cut", fmt::format("{}{}", page.chip(group.strategy.config),
                                       facts_of(group.strategy.sync).after_cut)) +
         table_cell("computing, ms", short_milliseconds(compute_of(group))) +
         table_cell("sums, ms", short_milliseconds(sync_of(group))) +
         table_cell("transfers, ms", short_milliseconds(transfer_of(group))) +
         table_cell("sent", short_bytes(static_cast<double>(group.bytes.count))) +
         table_cell("held", short_bytes(static_cast<double>(group.memory.count))) +
         table_cell("next best", next_best(plan, plan.runners_up[g])) +
         table_cell("by samples", by_sample(plan, group, plan.by_sample[g])) + "</tr>\n";
}

}  // namespace

std::string layers_part(const PlanPage& page) {
  const plan::Plan& plan = page.plan();
  std::string text =
      "<section id=\"layers\">\n<h2>Why each layer is cut as it is</h2>\n<p><b>Next best</b> is the "
      "second-best "
      "way to cut the layer, <b>by samples</b> the usual one: what an iteration would take longer with it, "
      "if "
      "all other layers were chosen anew for it.";
  if (plan.limited)
    text += " Memory limits this plan: what is chosen anew may not fit, so it would add at least so much.";
  text +=
      "</p>\n<table>\n<thead><tr><th scope=\"col\">layers</th><th scope=\"col\">cut</th>"
      "<th scope=\"col\">computing<br/>ms</th><th scope=\"col\">sums<br/>ms</th>"
      "<th scope=\"col\">transfers<br/>ms</th><th scope=\"col\">sent<br/>by all</th>"
      "<th scope=\"col\">held<br/>at most</th><th scope=\"col\">next best</th>"
      "<th scope=\"col\">by samples</th></tr></thead>\n<tbody>\n";
  for (size_t g = 0; g < plan.groups.size(); ++g) text += row(page, g);
  return text +
         fmt::format("</tbody>\n<tfoot><tr><th scope=\"row\">iteration: {} ms</th>",
                     short_milliseconds(plan.seconds)) +
         table_cell("cut", "") + table_cell("computing, ms", short_milliseconds(sum_of(plan, compute_of))) +
         table_cell("sums, ms", short_milliseconds(sum_of(plan, sync_of))) +
         table_cell("transfers, ms", short_milliseconds(sum_of(plan, transfer_of))) +
         table_cell("sent", short_bytes(static_cast<double>(plan.bytes.count))) +
         table_cell("held", short_bytes(static_cast<double>(plan.memory.count))) +
         table_cell("next best", "") + table_cell("by samples", "") + "</tr></tfoot>\n</table>\n</section>\n";
}

}  // namespace cortado
