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

// Seconds of one iteration: of the whole, of each work and of each step of the program. `exposed` and
// `data_wait`: the compute lane waited for messages, for batches. `messages`: the sum over all messages, also
// where they overlap.
struct IterationTimes {
  Seconds step, update, exposed, data_wait, messages, recomputed;
  IndexedVector<WorkIndex, Seconds> forward, backward, communication;
  IndexedVector<StepIndex, Seconds> steps;
};

// Medians over the iterations of one layer (or chain of layers run as one kernel) on this rank.
// communication: messages that bring its inputs, sums within it and of its gradients, hidden under computing
// or not.
struct LayerTimes {
  std::string name;
  Seconds forward, backward, communication;
  FlopRate rate;
};

// Layers are this rank's; flops, peak and bytes those of all ranks together.
struct TimeReport {
  std::vector<LayerTimes> layers;
  int ranks = 1;
  Seconds step, update, exposed, data_wait, messages;
  Seconds recomputed;   // of the backward pass: what computes tensors again
  int steps_again = 0;  // that do so
  Bytes arena;          // where tensors and gradients lie
  Flops flops;
  FlopRate peak;                 // 0: unknown
  double images = 0, bytes = 0;  // a mean
  std::string of_peak;           // "peak of 2 threads, measured in this run"
  FlopRate rate() const { return {flops.count / step.count}; }
  std::optional<double> percent_of_peak(FlopRate of_all_ranks) const;
  Seconds communication() const;
  Seconds compute() const;                // of the layers and the update
  std::optional<double> overlap() const;  // R in percent (report/overlap_ratio.h), of this rank
};

// `timeline`: what the program's rank did, in the order of its steps.
IterationTimes times_of(const Program& program, std::span<const TimelineEntry> timeline, Seconds step,
                        Seconds exposed, Seconds data_wait);
// Flops and layers are those of the program's rank.
TimeReport report_of(const Network& network, const Program& program,
                     const std::vector<IterationTimes>& times);
// Of an iteration of the program's rank.
Flops flops_of(const Network& network, const Program& program);
// The iteration whose step is nearest to the report's, of each `stride`th.
size_t nearest_to(const TimeReport& report, const std::vector<IterationTimes>& times, size_t stride);
IndexedVector<StepIndex, Seconds> step_medians(const std::vector<IterationTimes>& times);

std::string times_text(const TimeReport& report);
nlohmann::ordered_json times_json(const TimeReport& report);

}  // namespace cortado
