#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

using plan::Assignment;
using plan::PlannedGroup;

constexpr double full = bar_width;

std::string total_row(const PlanPage& page, const Assignment& of, double longest) {
  const plan::Plan& plan = page.plan();
  const bool self = &of == &plan;
  std::string remark, bar;
  if (std::isinf(of.seconds.count)) {
    remark = "impossible for this net";
  } else {
    remark = fmt::format("{} ms", short_milliseconds(of.seconds));
    if (!self) remark += fmt::format(", <b>{:.2f}\u00d7</b>", of.seconds.count / plan.seconds.count);
    if (!plan.fits(of.memory))
      remark += " <em>does not fit: " + short_bytes(static_cast<double>(of.memory.count)) + "</em>";
    bar = stacked_bar(sum_of(of, compute_of), sum_of(of, sync_of), sum_of(of, transfer_of), full / longest,
                      full, 0, 18);
  }
  const bool cut_off = std::isfinite(of.seconds.count) && of.seconds.count > longest * 1.0001;
  return fmt::format(
      "<li class=\"{}{}\"><span class=\"of\">{}</span>{}<span class=\"value\">{}</span></li>\n",
      self ? "self" : "", cut_off ? " over" : "", self ? "this plan" : escaped(of.name),
      bar_picture(18, "compute, sums and transfers", bar), remark);
}

struct Parts {
  Seconds compute, sync, transfer;
  Seconds total() const { return compute + sync + transfer; }
};

Parts parts_of(const Assignment& of, const PageUnit& unit) {
  Parts parts;
  for (size_t g : unit.groups) {
    parts.compute += compute_of(of.groups[g]);
    parts.sync += sync_of(of.groups[g]);
    parts.transfer += transfer_of(of.groups[g]);
  }
  return parts;
}

std::string bar(const Parts& parts, double longest, double y, double height) {
  return stacked_bar(parts.compute, parts.sync, parts.transfer, full / longest, full, y, height);
}

// The bars of one layer: the plan's, and below it each baseline's, of which the style shows one.
std::string layer_row(const PlanPage& page, const PageUnit& unit, double longest) {
  const PlannedGroup& group = page.plan().groups[unit.groups[0]];
  const Parts own = parts_of(page.plan(), unit);
  std::string bars = bar(own, longest, 0, 10);
  std::string values = fmt::format("<b>{}</b>", short_milliseconds(own.total()));
  for (size_t b = 0; b < page.plan().baselines.size(); ++b) {
    const Assignment& baseline = page.plan().baselines[b];
    if (std::isinf(baseline.seconds.count)) continue;
    const Parts parts = parts_of(baseline, unit);
    bars += fmt::format(
        "<g class=\"of-b b{}\">{}{}</g>", b, bar(parts, longest, 12, 5),
        parts.total().count > longest ? "<path class=\"over\" d=\"M988 11L1000 14.5L988 18Z\"/>" : "");
    values += fmt::format("<span class=\"of-b b{}\">{}</span>", b, short_milliseconds(parts.total()));
  }
  return fmt::format(
      "<li><a class=\"of\" href=\"#layer-{}\" title=\"{}\">{}</a>{}{}"
      "<span class=\"value\">{}</span></li>\n",
      unit.groups[0], page.name(unit), breakable(page.first_name(group)), page.chip(group.strategy.config),
      bar_picture(18, "compute, sums and transfers", bars), values);
}

// Returns the seconds of a full bar: enough for all layers of the plan and most layers of the baselines.
double longest_layer(const PlanPage& page) {
  double longest = 0, of_baselines = 0;
  for (const PageUnit& unit : page.units) {
    longest = std::max(longest, parts_of(page.plan(), unit).total().count);
    for (const Assignment& baseline : page.plan().baselines)
      if (std::isfinite(baseline.seconds.count))
        of_baselines = std::max(of_baselines, parts_of(baseline, unit).total().count);
  }
  return std::min(1.5 * longest, std::max(longest, of_baselines));
}

}  // namespace

std::string totals_part(const PlanPage& page) {
  const plan::Plan& plan = page.plan();
  double longest = plan.seconds.count;
  for (const Assignment& baseline : plan.baselines) {
    if (std::isfinite(baseline.seconds.count)) longest = std::max(longest, baseline.seconds.count);
  }
  longest = std::min(longest, 8 * plan.seconds.count);
  std::string text =
      "<section id=\"totals\">\n<h2>An iteration, beside the usual ways to cut</h2>\n<p "
      "class=\"note\"><b>single</b>: "
      "all on one device; <b>data</b>: every layer by samples; <b>model</b>: by output channels; <b>owt</b>: "
      "convolutions by samples, inner products by channels; <b>spatial</b>: by rows and columns; "
      "<b>replicated</b>: as data, each device computing whole gradients where that sends less; "
      "<b>server</b>: as data, gradients summed by servers in the hosts' memory, nothing hidden; "
      "<b>best-of-each</b>: each layer as one of these cuts it, whichever together are cheapest.</p>\n" +
      time_legend() + "<ul class=\"bars totals\">\n" + total_row(page, plan, longest);
  for (const Assignment& baseline : plan.baselines) text += total_row(page, baseline, longest);
  return text + "</ul>\n</section>\n";
}

std::string bars_part(const PlanPage& page) {
  const plan::Plan& plan = page.plan();
  std::string choices, labels, style, rows;
  for (size_t b = 0; b < plan.baselines.size(); ++b) {
    if (std::isinf(plan.baselines[b].seconds.count)) continue;
    const bool first = plan.baselines[b].name == "data";
    choices += fmt::format("<input type=\"radio\" name=\"beside\" id=\"beside-{}\"{}/>", b,
                           first ? " checked=\"checked\"" : "");
    labels += fmt::format("<label for=\"beside-{}\">{}</label>", b, escaped(plan.baselines[b].name));
    style += fmt::format(
        "#beside-{0}:checked ~ .bars .b{0}{{display:inline}}\n"
        "#beside-{0}:checked ~ .choice label[for=\"beside-{0}\"]{{background:var(--ink);"
        "color:var(--page)}}\n#beside-{0}:focus-visible ~ .choice "
        "label[for=\"beside-{0}\"]{{outline:2px solid var(--link);outline-offset:2px}}\n",
        b);
  }
  const double longest = longest_layer(page);
  for (const PageUnit& unit : page.units) rows += layer_row(page, unit, longest);
  return "<section id=\"bars\">\n<h2>Layer by layer</h2>\n<p>Thick bars are this plan's, thin ones the "
         "baseline's, in milliseconds.</p>\n<style>" +
         style + "</style>\n" + choices + "<p class=\"choice\"><span>beside</span> " + labels + "</p>\n" +
         time_legend() + "<ul class=\"bars layers\">\n" + rows + "</ul>\n</section>\n";
}

}  // namespace cortado
