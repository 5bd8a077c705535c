#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// Seconds of one iteration: the whole, and per work of the program. exposed, data_wait: while the compute
// lane waited for messages and for batches; messages: all of them, one by one.
struct IterationTimes {
  double step = 0, update = 0, exposed = 0, data_wait = 0, messages = 0;
  std::vector<double> forward, backward, communication;
  std::vector<double> steps;  // each step of the program
};

// Medians over the iterations of one layer (or chain of layers run as one kernel) on this rank.
// communication: messages that bring its inputs, sums within it and of its gradients, hidden under computing
// or not.
struct LayerTimes {
  std::string name;
  double forward = 0, backward = 0, communication = 0, gflops = 0;
};

// Layers are this rank's; flops, peak and bytes those of all ranks together.
struct TimeReport {
  std::vector<LayerTimes> layers;
  int ranks = 1;
  double step = 0, update = 0, exposed = 0, data_wait = 0, messages = 0;
  double flops = 0, peak = 0, images = 0, bytes = 0;
  std::string of_peak;  // "peak of 2 threads, measured in this run"
  double percent_of_peak() const { return 100 * flops / (step * peak); }
  double communication() const;
  double compute() const;                 // of the layers and the update
  std::optional<double> overlap() const;  // R in percent (report/run_report.h), of this rank
};

// `timeline`: what the program's rank did, in the order of its steps.
IterationTimes times_of(const Program& program, std::span<const TimelineEntry> timeline, double step_seconds,
                        double exposed, double data_wait);
// Flops and layers are those of the program's rank.
TimeReport report_of(const Network& network, const Program& program,
                     const std::vector<IterationTimes>& times);
double flops_of(const Network& network, const Program& program);  // of an iteration of its rank
// The iteration whose step is nearest to the report's, of each `stride`th.
size_t nearest_to(const TimeReport& report, const std::vector<IterationTimes>& times, size_t stride);
std::vector<double> step_medians(const std::vector<IterationTimes>& times);

std::string times_text(const TimeReport& report);
nlohmann::ordered_json times_json(const TimeReport& report);

}  // namespace cortado
