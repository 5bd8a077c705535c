#include "cortado/terminal/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace cortado {

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

void show_count(int64_t done, int64_t total) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr, "\r{} of {} ({}%){}", done, total, 100 * done / total, done == total ? "\n" : "");
  std::fflush(stderr);
}

std::string clock_text(double seconds) {
  auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace cortado
