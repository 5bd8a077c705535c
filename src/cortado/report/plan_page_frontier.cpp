#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/curve.h"
#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

constexpr double plot_width = 340, plot_height = 220, plot_left = 44, plot_right = 12, plot_top = 12,
                 plot_bottom = 38;
constexpr double gib = double{1 << 30};

// Where seconds and bytes lie in the picture.
struct Scale {
  double bytes_low, bytes_high, seconds_low, seconds_high;
  double x(double bytes) const {
    return plot_left + (bytes - bytes_low) / (bytes_high - bytes_low) * (plot_width - plot_left - plot_right);
  }
  double y(double seconds) const {
    return plot_height - plot_bottom -
           (seconds - seconds_low) / (seconds_high - seconds_low) * (plot_height - plot_top - plot_bottom);
  }
};

Scale scale_of(const plan::Plan& plan) {
  const auto &least = plan.frontier.front(), &most = plan.frontier.back();
  const auto low = static_cast<double>(least.memory.count), high = static_cast<double>(most.memory.count);
  const double bytes = std::max(0.08 * (high - low), 0.01 * high);
  const double seconds =
      std::max(0.08 * (least.seconds.count - most.seconds.count), 0.01 * most.seconds.count);
  return {low - bytes, high + bytes, most.seconds.count - seconds, least.seconds.count + seconds};
}

std::string axes(const Scale& scale) {
  std::string text;
  for (double tick : round_ticks(1e3 * scale.seconds_low, 1e3 * scale.seconds_high, 6)) {
    const double y = scale.y(tick / 1e3);
    text += fmt::format(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"end\" x=\"{:.0f}\" "
        "y=\"{:.1f}\">{:g}</text>",
        plot_left, y, plot_width - plot_right, plot_left - 5, y + 3.5, tick);
  }
  for (double tick : round_ticks(scale.bytes_low / gib, scale.bytes_high / gib, 6)) {
    const double x = scale.x(tick * gib);
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/><text class=\"middle\" "
        "x=\"{0:.1f}\" y=\"{3:.0f}\">{4:g}</text>",
        x, plot_top, plot_height - plot_bottom, plot_height - plot_bottom + 14, tick);
  }
  return text + fmt::format(
                    "<text class=\"middle\" x=\"{0:.0f}\" y=\"{1:.0f}\">GiB on a device</text>"
                    "<text class=\"middle\" x=\"{2:.0f}\" y=\"11\" transform=\"rotate(-90) "
                    "translate(-{3:.0f} 0)\">ms</text>",
                    (plot_left + plot_width - plot_right) / 2, plot_height - 6, 0.0,
                    (plot_top + plot_height - plot_bottom) / 2);
}

std::string picture(const plan::Plan& plan) {
  const Scale scale = scale_of(plan);
  std::string line, dots;
  for (const plan::Tradeoff& point : plan.frontier) {
    const double x = scale.x(static_cast<double>(point.memory.count)), y = scale.y(point.seconds.count);
    line += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(
        "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{} ms, {}</title>"
        "</circle>",
        point.chosen              ? "chosen"
        : plan.fits(point.memory) ? "fits"
                                  : "over",
        x, y, point.chosen ? 5.5 : 3.5, short_milliseconds(point.seconds),
        short_bytes(static_cast<double>(point.memory.count)));
  }
  std::string limit;
  const double x = scale.x(static_cast<double>(plan.memory_limit.count));
  if (plan.memory_limit.count > 0 && x > plot_left && x < plot_width - plot_right) {
    limit = fmt::format(
        "<path class=\"limit\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/><text class=\"end\" "
        "x=\"{3:.1f}\" y=\"{4:.0f}\">a device's memory</text>",
        x, plot_top, plot_height - plot_bottom, x - 4, plot_top + 9);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"Time of an iteration against memory of a device\">{}{}<polyline "
      "points=\"{}\"/>{}</svg>\n",
      plot_width, plot_height, axes(scale), limit, line, dots);
}

}  // namespace

std::string frontier_part(const PlanPage& page) {
  const plan::Plan& plan = page.plan();
  if (plan.frontier.empty()) return "";
  std::string rows;
  for (const plan::Tradeoff& point : plan.frontier) {
    rows += fmt::format("<tr><td>{} ms</td><td>{}</td><td>{}</td></tr>\n", short_milliseconds(point.seconds),
                        short_bytes(static_cast<double>(point.memory.count)),
                        point.chosen              ? "this plan"
                        : plan.fits(point.memory) ? ""
                                                  : "does not fit");
  }
  return "<section id=\"frontier\">\n<h2>Time against memory</h2>\n<p>What an iteration takes with less "
         "memory "
         "on a device, and with more.</p>\n<div class=\"frontier\">" +
         (plan.frontier.size() > 1 ? picture(plan) : std::string()) +
         "<table class=\"small\"><thead><tr><th scope=\"col\">iteration</th><th scope=\"col\">a device</th>"
         "<th scope=\"col\"></th></tr></thead><tbody>\n" +
         rows + "</tbody></table></div>\n</section>\n";
}

}  // namespace cortado
