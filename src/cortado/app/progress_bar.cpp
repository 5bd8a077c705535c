#include "cortado/app/progress_bar.h"

#include <algorithm>
#include <fmt/format.h>

namespace cortado {
namespace {

std::string short_outputs(const std::vector<OutputValue>& outputs) {
  std::string text;
  for (const OutputValue& output : outputs) text += fmt::format("  {} {:.4g}", output.name, output.value);
  return text;
}

}  // namespace

std::string progress_text(int64_t done, int64_t total, const std::vector<ProgressPart>& parts, int columns) {
  constexpr int least_cells = 8, most_cells = 24;
  total = std::max<int64_t>(1, total);
  const std::string count = fmt::format(" {}/{}", done, total);
  int left = columns - static_cast<int>(count.size()) - 2;  // the bar's own brackets
  std::vector<bool> shown(parts.size());
  std::vector<size_t> order(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return parts[i].importance; });
  for (size_t i : order) {
    const int width = static_cast<int>(parts[i].text.size()) + 2;
    if (left - width < least_cells) break;
    shown[i] = true;
    left -= width;
  }
  const int cells = std::clamp(left, 0, most_cells);
  const auto filled = static_cast<size_t>(cells * std::clamp<int64_t>(done, 0, total) / total);
  std::string text = fmt::format("[{}{}]{}", std::string(filled, '#'),
                                 std::string(static_cast<size_t>(cells) - filled, '.'), count);
  for (size_t i = 0; i < parts.size(); ++i)
    if (shown[i]) text += "  " + parts[i].text;
  return text;
}

std::string ProgressBar::bar(const IterationReport& r, int columns) const {
  const int64_t done = r.iteration + 1;
  const double left = seconds_ * static_cast<double>(std::max<int64_t>(0, r.max_iterations - done));
  std::vector<ProgressPart> parts{{fmt::format("loss {:.4f}", r.smoothed_loss), 0},
                                  {fmt::format("lr {:.4g}", r.learning_rate), 3},
                                  {fmt::format("{:.1f} images/s", rate_), 2},
                                  {fmt::format("ETA {}", clock_text(left)), 1},
                                  {fmt::format("data wait {:.1f} %", 100 * wait_share_), 4}};
  if (r.communication.count > 0)
    parts.push_back({fmt::format("exposed communication {:.1f} %", 100 * exposed_share_), 5});
  return progress_text(done, r.max_iterations, parts, columns);
}

void ProgressBar::iteration(const IterationReport& r) {
  if (!r.updated) return;
  double seconds = std::max(1e-9, r.duration.count);
  double keep = std::min(0.95, 1 - 1 / static_cast<double>(r.iteration - first_iteration_ + 1));
  seconds_ = keep * seconds_ + (1 - keep) * seconds;
  rate_ = static_cast<double>(r.images) / seconds_;
  wait_share_ = keep * wait_share_ + (1 - keep) * r.data_wait.count / seconds;
  exposed_share_ = keep * exposed_share_ + (1 - keep) * r.exposed_communication.count / seconds;
  auto now = Clock::now();
  bool last = r.iteration + 1 == r.max_iterations;
  if (!last && std::chrono::duration<double>(now - last_drawn_).count() < 0.1) return;
  last_drawn_ = now;
  line_.draw(bar(r, terminal_columns() - 1));
}

void ProgressBar::test(const TestReport& r) {
  std::string loss = r.loss ? fmt::format("  test loss {:.4g}", *r.loss) : "";
  line_.print_above(fmt::format("iteration {}  test #{}:{}{}  ({:.1f} s)", r.iteration, r.net,
                                short_outputs(r.outputs), loss, r.duration.count));
}

void ProgressBar::snapshot(int64_t iteration, const std::string& path) {
  line_.print_above(fmt::format("iteration {}  snapshot {}", iteration, path));
}

}  // namespace cortado
