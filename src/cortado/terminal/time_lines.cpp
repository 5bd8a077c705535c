#include "cortado/terminal/time_lines.h"

#include <fmt/format.h>

#include "cortado/report/layer_means.h"
#include "cortado/terminal/log_lines.h"
#include "cortado/terminal/progress.h"
#include "cortado/terminal/terminal.h"

namespace cortado {
namespace {

Seconds passes(const IterationTimes& times) { return times.step - times.update; }

}  // namespace

TimeLines::TimeLines(bool lines, int iterations, const std::string& use)
    : lines_(lines), iterations_(iterations) {
  if (!lines_) {
    line_.draw("warming up");
    return;
  }
  log_line("caffe.cpp:347", use);
  log_line("caffe.cpp:369", "*** Benchmark begins ***");
  log_line("caffe.cpp:370", fmt::format("Testing for {} iterations.", iterations));
}

void TimeLines::iteration(const IterationTimes& times) {
  ++done_;
  seconds_ += times.step.count;
  const double left = seconds_ / done_ * (iterations_ - done_), ms = 1e3 * passes(times).count;
  if (lines_)
    return log_line("caffe.cpp:398",
                    fmt::format("Iteration: {} forward-backward time: {:.6g} ms.", done_, ms));
  line_.draw(progress_text(
      done_, iterations_,
      {{fmt::format("forward-backward {:.4g} ms", ms), 1}, {fmt::format("ETA {}", clock_text(left)), 0}},
      terminal_columns() - 1));
}

void TimeLines::end(const Network& network, const Program& program,
                    const std::vector<IterationTimes>& times) {
  if (!lines_) return line_.clear();
  const auto forward = means_of_nodes(network, program, times, &IterationTimes::forward);
  const auto backward = means_of_nodes(network, program, times, &IterationTimes::backward);
  double forward_sum = 0, backward_sum = 0, total = 0;
  log_line("caffe.cpp:401", "Average time per layer: ");
  for (NodeIndex i : indices(network.nodes())) {
    const std::string& name = network.nodes()[i].name;
    log_line("caffe.cpp:404", fmt::format("{:>10}\tforward: {:.6g} ms.", name, forward[i]));
    log_line("caffe.cpp:407", fmt::format("{:>10}\tbackward: {:.6g} ms.", name, backward[i]));
    forward_sum += forward[i];
    backward_sum += backward[i];
  }
  for (const IterationTimes& iteration : times) total += 1e3 * passes(iteration).count;
  log_line("caffe.cpp:412", fmt::format("Average Forward pass: {:.6g} ms.", forward_sum));
  log_line("caffe.cpp:414", fmt::format("Average Backward pass: {:.6g} ms.", backward_sum));
  log_line("caffe.cpp:416",
           fmt::format("Average Forward-Backward: {:.6g} ms.", total / static_cast<double>(times.size())));
  log_line("caffe.cpp:418", fmt::format("Total Time: {:.6g} ms.", total));
  log_line("caffe.cpp:419", "*** Benchmark ends ***");
  if (const std::string within = layers_within(network, program); !within.empty())
    log_line(our_line, "Counted with the layer that computes them: " + within);
}

}  // namespace cortado
