#include "cortado/terminal/training_lines.h"

#include <fmt/format.h>

#include "cortado/base/seconds_since.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/train/snapshot_names.h"

namespace cortado {
namespace {

void print_outputs(std::string_view origin, const char* net, const std::vector<OutputValue>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i)
    log_line(origin, fmt::format("    {} net output #{}: {}", net, i, output_text(outputs[i])));
}

}  // namespace

std::string output_text(const OutputValue& o) {
  const std::string text = fmt::format("{} = {:.6g}", o.name, o.value);
  if (o.loss_weight == 0) return text;
  return text + fmt::format(" (* {:.6g} = {:.6g} loss)", o.loss_weight, o.loss_weight * o.value);
}

TrainingLines::TrainingLines(const SolverOptions& solver)
    : display_(solver.display), format_(solver.snapshot_format) {}

void TrainingLines::iteration(const IterationReport& r) {
  if (!r.display) return;
  if (!r.updated)
    return log_line("solver.cpp:310",
                    fmt::format("Iteration {}, loss = {:.6g}", r.iteration, r.smoothed_loss));
  auto now = Clock::now();
  const double lapse = seconds_since(last_time_, now).count;
  int64_t done = last_iteration_ < 0 ? 0 : r.iteration - last_iteration_;
  log_line("solver.cpp:218",
           fmt::format("Iteration {} ({:.6g} iter/s, {:.6g}s/{} iters), loss = {:.6g}", r.iteration,
                       static_cast<double>(done) / lapse, lapse, display_, r.smoothed_loss));
  print_outputs("solver.cpp:237", "Train", r.outputs);
  log_line("sgd_solver.cpp:105", fmt::format("Iteration {}, lr = {:.6g}", r.iteration, r.learning_rate));
  last_time_ = now;
  last_iteration_ = r.iteration;
}

void TrainingLines::test_begins(int64_t iteration, int net) {
  log_line("solver.cpp:330", fmt::format("Iteration {}, Testing net (#{})", iteration, net));
}

void TrainingLines::test(const TestReport& r) {
  if (r.loss) log_line("solver.cpp:386", fmt::format("Test loss: {:.6g}", *r.loss));
  print_outputs("solver.cpp:397", "Test", r.outputs);
}

// Caffe writes weights and state into two files, Cortado into one.
void TrainingLines::snapshot(int64_t, const std::string& path) {
  if (format_ == SnapshotFormat::cortado)
    return log_line(our_line, fmt::format("Snapshotting solver state to {}", path));
  const bool binary = format_ == SnapshotFormat::caffe;
  const char* kind = binary ? "binary proto" : "HDF5";
  log_line(binary ? "solver.cpp:447" : "solver.cpp:459",
           fmt::format("Snapshotting to {} file {}", kind, weights_beside(path)));
  log_line(binary ? "sgd_solver.cpp:273" : "sgd_solver.cpp:288",
           fmt::format("Snapshotting solver state to {} file {}", kind, path));
}

}  // namespace cortado
