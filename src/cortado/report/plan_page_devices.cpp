#include <cmath>
#include <fmt/format.h>

#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

constexpr double track_width = 1000, track_height = 22;

// Consecutive devices that compute equally long.
struct Row {
  int first = 0, last = 0;
};

bool compute_the_same(const plan::Plan& plan, size_t a, size_t b) {
  for (const plan::PlannedGroup& group : plan.groups)
    if (std::abs(group.shares[a] - group.shares[b]) > 0.005) return false;
  return true;
}

std::vector<Row> rows_of(const plan::Plan& plan, int devices) {
  std::vector<Row> rows;
  for (int device = 0; device < devices; ++device) {
    if (!rows.empty() &&
        compute_the_same(plan, static_cast<size_t>(rows.back().first), static_cast<size_t>(device))) {
      rows.back().last = device;
    } else {
      rows.push_back({device, device});
    }
  }
  return rows;
}

std::string rect(const std::string& css_class, double x, double width, const std::string& title) {
  if (width < 0.05) return "";
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{:.0f}\"><title>{}"
      "</title></rect>",
      css_class, x, width, track_height, title);
}

// An iteration as Eq. 1 counts it, one layer after the other: what comes to it, then the layer itself.
std::string row_text(const PlanPage& page, const Row& row) {
  const plan::Plan& plan = page.plan();
  const double scale = track_width / plan.seconds.count;
  const auto device = static_cast<size_t>(row.first);
  std::string bars;
  double at = 0, computing = 0;
  for (const plan::PlannedGroup& group : plan.groups) {
    const double moving = (sync_of(group) + transfer_of(group)).count;
    const double busy = compute_of(group).count * group.shares[device];
    const std::string name = page.name(group);
    if (group.shares[device] > 0)
      bars += rect("waits", at, moving * scale,
                   fmt::format("{}: {} ms of sums and transfers", name, short_number(1e3 * moving)));
    bars += rect("box " + page.colours.css_class(group.strategy.config.degrees), at + moving * scale,
                 busy * scale, fmt::format("{}: computes {} ms", name, short_number(1e3 * busy)));
    at += group.total().count * scale;
    computing += busy;
  }
  const std::string name = row.first == row.last ? fmt::format("device {}", row.first)
                                                 : fmt::format("devices {}\u2013{}", row.first, row.last);
  return fmt::format(
      "<li><span class=\"of\">{0}</span><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {1:.0f} "
      "{2:.0f}\" preserveAspectRatio=\"none\" style=\"height:{2:.0f}px\" role=\"img\" aria-label=\"{0}: "
      "computes {3} ms\"><rect class=\"nothing\" width=\"{1:.0f}\" height=\"{2:.0f}\"/>{4}</svg>"
      "<span class=\"value\"><b>{5:.0f} %</b> {3} ms</span></li>\n",
      name, track_width, track_height, short_number(1e3 * computing), bars,
      100 * computing / plan.seconds.count);
}

}  // namespace

std::string devices_part(const PlanPage& page) {
  std::string text =
      "<section id=\"devices\">\n<h2>What the devices do</h2>\n<p>An iteration from left to right, one layer "
      "after the other, forward and back together; the share of it that a device computes. A device's time "
      "is "
      "the slowest one's, by its share of the layer.</p>\n"
      "<ul class=\"legend\"><li><i class=\"swatch computing\"></i>computes, in the colour of the cut</li>"
      "<li><i class=\"swatch waits\"></i>sums and transfers</li>"
      "<li><i class=\"swatch nothing\"></i>idle</li></ul>\n<ul class=\"bars devices\">\n";
  for (const Row& row : rows_of(page.plan(), page.report.machine.devices())) text += row_text(page, row);
  return text + "</ul>\n</section>\n";
}

}  // namespace cortado
