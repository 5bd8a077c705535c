#pragma once

#include <string>
#include <vector>

namespace cortado {

// One line of a picture: values over iterations.
struct Curve {
  struct Point {
    double x = 0, y = 0;
  };
  std::string name;
  std::vector<Point> points;  // ascending x
  bool faint = false;         // drawn thin and pale, behind the others
  bool marked = false;        // a dot at each point
};

// A panel: an axis of its own.
struct CurvePanel {
  std::string title;  // of the vertical axis
  std::vector<Curve> curves;
};

// A picture of panels one above the other over a common horizontal axis, as a self-contained SVG: axes with
// round ticks, grid, legend. Points beyond what the picture can show are thinned to the extremes of each
// pixel column; points that are not finite are left out.
std::string curves_svg(const std::string& title, const std::string& x_title,
                       const std::vector<CurvePanel>& panels);

// Mean over a centred window, for the line that is drawn over the faint one.
std::vector<Curve::Point> smoothed_points(const std::vector<Curve::Point>& points, size_t window);

// Round numbers, at most `most` of them, that span [low, high]: steps of 1, 2 or 5 times a power of ten.
std::vector<double> round_ticks(double low, double high, int most);

}  // namespace cortado
