#include "cortado/report/curve.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/report/markup.h"

namespace cortado {
namespace {

constexpr double width = 960, panel_height = 300, left = 84, right = 24, top = 56, gap = 44, bottom = 64;
constexpr const char* colours[] = {"#1f5fbf", "#d1495b", "#2a9d63", "#e08e1b", "#7b52ab", "#2b9fb3"};

struct Interval {
  double low = 0, high = 1;
  double share(double value) const { return (value - low) / (high - low); }
};

// Maps values to pixels of one panel: x to the horizontal one, y to the vertical one.
struct Frame {
  Interval x, y;
  double panel_top = 0;
  double across(double value) const { return left + x.share(value) * (width - left - right); }
  double down(double value) const { return panel_top + (1 - y.share(value)) * panel_height; }
};

bool is_finite(const Curve::Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

template <typename Coordinate>
Interval interval_of(const std::vector<CurvePanel>& panels, const Coordinate& coordinate) {
  double low = INFINITY, high = -INFINITY;
  for (const CurvePanel& panel : panels) {
    for (const Curve& curve : panel.curves) {
      for (const Curve::Point& point : curve.points) {
        if (!is_finite(point)) continue;
        low = std::min(low, coordinate(point));
        high = std::max(high, coordinate(point));
      }
    }
  }
  if (low > high) return {0, 1};
  if (low == high) {  // around the one value, and not beyond 0
    const double reach = low == 0 ? 0.5 : 0.1 * std::abs(low);
    return {low - reach, high + reach};
  }
  return {low, high};
}

// Keeps the first, smallest, largest and last point of each pixel column.
std::vector<Curve::Point> thinned(const std::vector<Curve::Point>& points, const Frame& frame) {
  std::vector<Curve::Point> result;
  for (size_t i = 0; i < points.size();) {
    auto column = std::floor(frame.across(points[i].x));
    size_t end = i, low = i, high = i;
    for (; end < points.size() && std::floor(frame.across(points[end].x)) == column; ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    size_t kept[] = {i, std::min(low, high), std::max(low, high), end - 1};
    for (size_t k = 0; k < 4; ++k) {
      if (k == 0 || kept[k] != kept[k - 1]) result.push_back(points[kept[k]]);
    }
    i = end;
  }
  return result;
}

std::string curve_svg(const Curve& curve, const Frame& frame, const std::string& colour) {
  std::vector<Curve::Point> points;
  std::copy_if(curve.points.begin(), curve.points.end(), std::back_inserter(points), is_finite);
  points = thinned(points, frame);
  if (points.empty()) return "";
  std::string path, dots;
  for (const Curve::Point& point : points) {
    path += fmt::format("{:.1f},{:.1f} ", frame.across(point.x), frame.down(point.y));
    if (curve.marked) {
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n",
                          frame.across(point.x), frame.down(point.y), colour);
    }
  }
  path.pop_back();
  return fmt::format(
             "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\" "
             "stroke-linejoin=\"round\"/>\n",
             path, colour, curve.faint ? "1" : "2", curve.faint ? "0.3" : "1") +
         dots;
}

std::string text_svg(double x, double y, const char* anchor, int size, const std::string& text,
                     const std::string& more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", x,
                     y, anchor, size, more, escaped(text));
}

std::string line_svg(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1,
                     y1, x2, y2, colour);
}

std::string axes_svg(const CurvePanel& panel, const Frame& frame, bool names_x) {
  double base = frame.panel_top + panel_height;
  std::string svg;
  for (double tick : round_ticks(frame.y.low, frame.y.high, 7)) {
    svg += line_svg(left, frame.down(tick), width - right, frame.down(tick), "#e3e6ea");
    svg += text_svg(left - 8, frame.down(tick) + 4, "end", 12, fmt::format("{:g}", tick));
  }
  for (double tick : round_ticks(frame.x.low, frame.x.high, 9)) {
    svg += line_svg(frame.across(tick), frame.panel_top, frame.across(tick), base, "#eef0f3");
    if (names_x) svg += text_svg(frame.across(tick), base + 18, "middle", 12, fmt::format("{:g}", tick));
  }
  svg += line_svg(left, base, width - right, base, "#50565e") +
         line_svg(left, frame.panel_top, left, base, "#50565e");
  double middle = frame.panel_top + panel_height / 2;
  return svg + text_svg(24, middle, "middle", 14, panel.title,
                        fmt::format(" transform=\"rotate(-90 24 {:.1f})\"", middle));
}

// Returns where the legend begins: on the right, at the end that the curves leave free.
double legend_top(const CurvePanel& panel, const Frame& frame, double height) {
  for (const Curve& curve : panel.curves) {
    if (curve.points.empty() || !is_finite(curve.points.back())) continue;
    bool ends_high = frame.y.share(curve.points.back().y) > 0.5;
    return frame.panel_top + (ends_high ? panel_height - height - 2 : 2);
  }
  return frame.panel_top + 2;
}

std::string panel_svg(const CurvePanel& panel, const Frame& frame, bool names_x) {
  std::string svg = axes_svg(panel, frame, names_x), legend;
  auto count =
      std::count_if(panel.curves.begin(), panel.curves.end(), [](const Curve& c) { return !c.faint; });
  double height = 12 + 20 * static_cast<double>(count), legend_y = legend_top(panel, frame, height);
  size_t named = 0;
  for (size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    std::string colour = colours[(curve.faint ? 0 : named) % std::size(colours)];
    svg += curve_svg(curve, frame, colour);
    if (curve.faint) continue;
    double x = width - right - 190, y = legend_y + 18 + 20 * static_cast<double>(named++);
    legend +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"4\" fill=\"{}\"/>\n", x, y - 6, colour);
    legend += text_svg(x + 26, y, "start", 13, curve.name);
  }
  return svg +
         fmt::format(
             "<rect x=\"{}\" y=\"{}\" width=\"196\" height=\"{}\" fill=\"#ffffff\" opacity=\"0.8\"/>\n",
             width - right - 200, legend_y, height) +
         legend;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int most) {
  double rough = (high - low) / most;
  double power = std::pow(10, std::floor(std::log10(rough))), step = power;
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * (1 - 1e-9)) break;
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    ticks.push_back(k == 0 ? 0 : k * step);
  return ticks;
}

std::vector<Curve::Point> smoothed_points(const std::vector<Curve::Point>& points, size_t window) {
  std::vector<double> sums{0};
  for (const auto& point : points) sums.push_back(sums.back() + point.y);
  std::vector<Curve::Point> result;
  for (size_t i = 0; i < points.size(); ++i) {
    size_t reach = std::min({window / 2, i, points.size() - 1 - i});
    double sum = sums[i + reach + 1] - sums[i - reach];
    result.push_back({points[i].x, sum / static_cast<double>(2 * reach + 1)});
  }
  return result;
}

std::string curves_svg(const std::string& title, const std::string& x_title,
                       const std::vector<CurvePanel>& panels) {
  double count = static_cast<double>(panels.size());
  double height = top + count * panel_height + (count - 1) * gap + bottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" fill=\"#23272d\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      width, height);
  svg += text_svg(left, 32, "start", 18, title);
  Interval x = interval_of(panels, [](const Curve::Point& p) { return p.x; });
  for (size_t i = 0; i < panels.size(); ++i) {
    Interval y = interval_of({panels[i]}, [](const Curve::Point& p) { return p.y; });
    double margin = 0.05 * (y.high - y.low);
    if (y.low > 0 && y.low < 0.5 * y.high) y.low = margin;  // a loss falls toward zero: show the zero
    Frame frame{x, {y.low - margin, y.high + margin}, top + static_cast<double>(i) * (panel_height + gap)};
    svg += panel_svg(panels[i], frame, i + 1 == panels.size());
  }
  return svg + text_svg((left + width - right) / 2, height - 18, "middle", 14, x_title) + "</svg>\n";
}

}  // namespace cortado
