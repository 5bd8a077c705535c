#include "cortado/app/training_lines.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

namespace cortado {
namespace {

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

std::string clock_text(double seconds) {
  auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string short_outputs(const std::vector<OutputValue>& outputs) {
  std::string text;
  for (const OutputValue& output : outputs) text += fmt::format("  {} {:.4g}", output.name, output.value);
  return text;
}

}  // namespace

std::string output_lines(const std::string& head, const std::vector<OutputValue>& outputs) {
  std::string lines;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputValue& o = outputs[i];
    lines += fmt::format("    {} net output #{}: {} = {:.6g}", head, i, o.name, o.value);
    if (o.loss_weight != 0)
      lines += fmt::format(" (* {:.6g} = {:.6g} loss)", o.loss_weight, o.loss_weight * o.value);
    lines += '\n';
  }
  return lines;
}

TrainingLines::TrainingLines(const SolverOptions& solver)
    : display_(solver.display), format_(solver.snapshot_format) {}

void TrainingLines::iteration(const IterationReport& r) {
  if (!r.display) return;
  auto now = Clock::now();
  double lapse = seconds_between(last_time_, now);
  int64_t done = last_iteration_ < 0 ? 0 : r.iteration - last_iteration_;
  fmt::print("Iteration {} ({:.6g} iter/s, {:.6g}s/{} iters), loss = {:.6g}\n", r.iteration,
             static_cast<double>(done) / lapse, lapse, display_, r.smoothed_loss);
  fmt::print("{}", output_lines("Train", r.outputs));
  if (r.updated) fmt::print("Iteration {}, lr = {:.6g}\n", r.iteration, r.learning_rate);
  std::fflush(stdout);
  last_time_ = now;
  last_iteration_ = r.iteration;
}

void TrainingLines::test_begins(int64_t iteration, int net) {
  fmt::print("Iteration {}, Testing net (#{})\n", iteration, net);
  std::fflush(stdout);
}

void TrainingLines::test(const TestReport& r) {
  if (r.loss) fmt::print("Test loss: {:.6g}\n", *r.loss);
  fmt::print("{}", output_lines("Test", r.outputs));
  std::fflush(stdout);
}

void TrainingLines::snapshot(int64_t, const std::string& path) {
  fmt::print("Snapshotting solver state to {}\n", path);
  std::fflush(stdout);
}

ProgressBar::~ProgressBar() {
  if (!drawn_.empty()) fmt::print("\n");
  std::fflush(stdout);
}

void ProgressBar::print_above(const std::string& line) {
  fmt::print("\r\x1b[K{}\n{}", line, drawn_);
  std::fflush(stdout);
}

std::string ProgressBar::bar(const IterationReport& r) const {
  constexpr int64_t cells = 24;
  int64_t total = std::max<int64_t>(1, r.max_iterations), done = r.iteration + 1;
  auto filled = static_cast<size_t>(cells * done / total);
  double left = seconds_ * static_cast<double>(total - done);
  const std::string exposed =
      r.communication.count > 0 ? fmt::format("  exposed communication {:.1f} %", 100 * exposed_share_) : "";
  return fmt::format("[{}{}] {}/{}  loss {:.4f}  lr {:.4g}  {:.1f} images/s  ETA {}  data wait {:.1f} %{}",
                     std::string(filled, '#'), std::string(cells - filled, '.'), done, total, r.smoothed_loss,
                     r.learning_rate, rate_, clock_text(left), 100 * wait_share_, exposed);
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
  if (!last && seconds_between(last_drawn_, now) < 0.1) return;
  last_drawn_ = now;
  drawn_ = bar(r);
  fmt::print("\r\x1b[K{}", drawn_);
  std::fflush(stdout);
}

void ProgressBar::test(const TestReport& r) {
  std::string loss = r.loss ? fmt::format("  test loss {:.4g}", *r.loss) : "";
  print_above(fmt::format("iteration {}  test #{}:{}{}  ({:.1f} s)", r.iteration, r.net,
                          short_outputs(r.outputs), loss, r.duration.count));
}

void ProgressBar::snapshot(int64_t iteration, const std::string& path) {
  print_above(fmt::format("iteration {}  snapshot {}", iteration, path));
}

}  // namespace cortado
