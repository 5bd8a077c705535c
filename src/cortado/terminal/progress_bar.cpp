#include "cortado/terminal/progress_bar.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/seconds_since.h"
#include "cortado/terminal/progress.h"
#include "cortado/terminal/terminal.h"

namespace cortado {
namespace {

std::string short_outputs(const std::vector<OutputValue>& outputs) {
  std::string text;
  for (const OutputValue& output : outputs) text += fmt::format("  {} {:.4g}", output.name, output.value);
  return text;
}

}  // namespace

std::string ProgressBar::bar(const IterationReport& r, int columns) const {
  const int64_t done = r.iteration + 1;
  const double left =
      pace_.seconds_per_iteration() * static_cast<double>(std::max<int64_t>(0, r.max_iterations - done));
  std::vector<ProgressPart> parts{{fmt::format("loss {:.4f}", r.smoothed_loss), 0},
                                  {fmt::format("lr {:.4g}", r.learning_rate), 3},
                                  {fmt::format("{:.1f} images/s", pace_.images_per_second()), 2},
                                  {fmt::format("ETA {}", clock_text(left)), 1},
                                  {fmt::format("data wait {:.1f} %", 100 * pace_.wait_share()), 4}};
  if (r.communication.count > 0)
    parts.push_back({fmt::format("exposed communication {:.1f} %", 100 * pace_.exposed_share()), 5});
  return progress_text(done, r.max_iterations, parts, columns);
}

void ProgressBar::iteration(const IterationReport& r) {
  if (!r.updated) return;
  pace_.add(r);
  auto now = Clock::now();
  bool last = r.iteration + 1 == r.max_iterations;
  if (!last && seconds_since(last_drawn_, now).count < 0.1) return;
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
