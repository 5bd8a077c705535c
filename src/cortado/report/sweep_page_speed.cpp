#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/report/sweep_page_parts.h"

namespace cortado {
namespace {

using plan::SweepPoint;

constexpr double chart_width = 360, chart_height = 240, chart_left = 50, chart_right = 14, chart_top = 12,
                 chart_bottom = 38;

// Where devices and images a second lie in the picture, both by their logarithms.
struct ChartScale {
  double devices_low = 0, devices_high = 1, rate_low = 0, rate_high = 1;  // base 2
  double x(double devices) const {
    return chart_left + (std::log2(devices) - devices_low) / (devices_high - devices_low) *
                            (chart_width - chart_left - chart_right);
  }
  double y(double rate) const {
    return chart_height - chart_bottom -
           (std::log2(rate) - rate_low) / (rate_high - rate_low) * (chart_height - chart_top - chart_bottom);
  }
};

ChartScale chart_scale(const plan::Sweep& sweep) {
  double low = INFINITY, high = 0, few = INFINITY, many = 0;
  for (const SweepPoint& point : sweep.points) {
    if (!point.fits()) continue;
    low = std::min(low, point.images_per_second());
    high = std::max(high, point.images_per_second());
    few = std::min(few, static_cast<double>(point.devices));
    many = std::max(many, static_cast<double>(point.devices));
  }
  constexpr double room = 0.3;
  return {std::log2(few) - room, std::log2(many) + room, std::log2(low) - room, std::log2(high) + room};
}

std::string chart_axes(const plan::Sweep& sweep, const ChartScale& scale) {
  std::string text;
  std::vector<int> devices;
  for (const SweepPoint& point : sweep.points) devices.push_back(point.devices);
  std::ranges::sort(devices);
  devices.erase(std::ranges::unique(devices).begin(), devices.end());
  constexpr double label_width = 26;
  double labelled = 0;
  for (int count : devices) {
    const double x = scale.x(count);
    if (x < chart_left || x > chart_width - chart_right || x < labelled) continue;
    labelled = x + label_width;
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1:.0f}V{2:.0f}\"/><text class=\"middle\" x=\"{0:.1f}\" "
        "y=\"{3:.0f}\">{4}</text>",
        x, chart_top, chart_height - chart_bottom, chart_height - chart_bottom + 14, count);
  }
  const double decades = (scale.rate_high - scale.rate_low) / std::log2(10.0);
  for (double power = std::floor(scale.rate_low / std::log2(10.0)) - 1; power <= scale.rate_high; ++power) {
    for (double step : {1.0, 2.0, 5.0}) {
      const double rate = step * std::pow(10, power), y = scale.y(rate);
      if (y < chart_top || y > chart_height - chart_bottom || (decades > 3 && step > 1)) continue;
      text += fmt::format(
          "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"end\" x=\"{:.0f}\" y=\"{:.1f}\">"
          "{:g}</text>",
          chart_left, y, chart_width - chart_right, chart_left - 5, y + 3.5, rate);
    }
  }
  return text + fmt::format(
                    "<text class=\"middle\" x=\"{:.0f}\" y=\"{:.0f}\">devices</text><text class=\"middle\" "
                    "x=\"0\" y=\"11\" transform=\"rotate(-90) translate(-{:.0f} 0)\">images a second</text>",
                    (chart_left + chart_width - chart_right) / 2, chart_height - 6,
                    (chart_top + chart_height - chart_bottom) / 2);
}

std::string chart_curve(const SweepSeries& series, const ChartScale& scale, const SweepPoint* taken) {
  std::string line, dots, ideal;
  const SweepPoint *first = nullptr, *last = nullptr;
  for (const SweepPoint* point : series.points) {
    if (!point->fits()) continue;
    if (!first) first = point;
    last = point;
    const double x = scale.x(point->devices), y = scale.y(point->images_per_second());
    line += fmt::format("{:.1f},{:.1f} ", x, y);
    dots += fmt::format(
        "<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{} devices: {} images a second"
        "</title></circle>",
        point == taken ? " taken" : "", x, y, point == taken ? 5 : 3, point->devices,
        short_number(point->images_per_second()));
  }
  if (!first) return "";
  // As fast as devices are many, up to the picture's top.
  const double base = std::log2(first->images_per_second()) - std::log2(first->devices);
  const double end = std::min(std::log2(last->devices), scale.rate_high - base);
  if (last != first)
    ideal = fmt::format("<path class=\"ideal\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", scale.x(first->devices),
                        scale.y(first->images_per_second()), scale.x(std::exp2(end)),
                        scale.y(std::exp2(base + end)));
  return fmt::format("<g class=\"{}\">{}<polyline class=\"line\" points=\"{}\"/>{}</g>", series.css_class,
                     ideal, line, dots);
}

}  // namespace

std::string speed_part(const SweepReport& report) {
  const SweepPoint* taken = taken_point(report.sweep);
  if (!taken) return "";
  const ChartScale scale = chart_scale(report.sweep);
  std::string curves, legend;
  for (const SweepSeries& series : series_of(report.sweep)) {
    curves += chart_curve(series, scale, taken);
    legend += fmt::format("<li><i class=\"swatch {}\"></i>{}</li>", series.css_class, series.name);
  }
  return fmt::format(
      "<section id=\"speed\">\n<h2>What more devices give</h2>\n<p>Images a second over devices, both by "
      "their "
      "logarithms. Dashed: if each device gave as much as those of the first point.</p>\n<ul "
      "class=\"legend\">{}</ul>\n<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 "
      "{:.0f} {:.0f}\" role=\"img\" aria-label=\"Images a second over devices\">{}{}</svg>\n</section>\n",
      legend, chart_width, chart_height, chart_axes(report.sweep, scale), curves);
}

}  // namespace cortado
