#include "cortado/train/training_curves.h"

#include <algorithm>
#include <fmt/format.h>

namespace cortado {
namespace {

void add_point(std::vector<Curve>& curves, const std::string& name, Curve::Point point) {
  auto known = std::find_if(curves.begin(), curves.end(), [&](const Curve& c) { return c.name == name; });
  if (known == curves.end()) known = curves.insert(curves.end(), Curve{.name = name, .marked = true});
  known->points.push_back(point);
}

}  // namespace

void TrainingCurves::iteration(const IterationReport& r) {
  if (r.updated) losses_.push_back({static_cast<double>(r.iteration), r.loss});
}

void TrainingCurves::test(const TestReport& r) {
  for (const OutputValue& o : r.outputs) {
    std::string name = r.net == 0 ? "test " + o.name : fmt::format("test {} {}", r.net, o.name);
    add_point(o.loss_weight != 0 ? test_losses_ : test_scores_, name,
              {static_cast<double>(r.iteration), o.value});
  }
}

std::string TrainingCurves::svg(const std::string& title) const {
  CurvePanel loss{"loss", {{.name = "", .points = losses_, .faint = true}}};
  size_t window = std::max<size_t>(1, losses_.size() / 50);
  loss.curves.push_back(
      {.name = fmt::format("training loss, mean of {}", window), .points = smoothed_points(losses_, window)});
  loss.curves.insert(loss.curves.end(), test_losses_.begin(), test_losses_.end());
  std::vector<CurvePanel> panels{loss};
  if (!test_scores_.empty()) panels.push_back({"test", test_scores_});
  return curves_svg(title, "iteration", panels);
}

}  // namespace cortado
