#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/report/overlap_ratio.h"
#include "cortado/report/page.h"
#include "cortado/report/time_report.h"
#include "cortado/report/trace.h"

namespace cortado {

// Seconds of a rank in one iteration.
struct RunTotals {
  Seconds end, compute, communication, exposed, data_wait;
  std::optional<double> overlap() const { return overlap_ratio(communication, exposed); }
};
RunTotals totals_of(std::span<const TraceSlice> slices);  // of one rank

// Times of a layer, in the order of Eq. 1's terms.
struct LayerParts {
  Seconds compute, sync, transfer;  // with its update; sums of its gradients; what else moves
  Seconds total() const { return compute + sync + transfer; }
};

// What was predicted of a run, and what it was.
struct RunPrediction {
  Seconds step, one_by_one;        // simulated; with nothing hidden
  std::vector<TraceSlice> slices;  // of all ranks, simulated
  struct Layer {
    std::string name;
    LayerParts predicted, measured;
  };
  std::vector<Layer> layers;  // of rank 0
};

// An iteration of a job, measured or simulated: all that its page shows.
struct RunReport {
  std::string net;
  std::string about;       // "medians of 50 iterations on 2 ranks, ..."
  bool simulated = false;  // else measured
  int ranks = 1;
  double images = 0, bytes = 0;    // of an iteration, of all ranks
  Seconds step;                    // from one iteration to the next; of those measured the median
  RunTotals totals;                // of rank 0, too
  std::vector<TraceSlice> slices;  // of all ranks, of one iteration
  // The iteration that the slices show: its number among `count` measured ones, and its time; and the
  // quartiles between which half of all times lie.
  struct Drawn {
    int number = 0, count = 0;
    Seconds step, lower, upper;
  };
  std::optional<Drawn> drawn;
  std::optional<RunPrediction> prediction;
  PageOrigin origin;
};

// Returns the report of an iteration that took these times. `slices`: those of all ranks.
RunReport run_report_of(const TimeReport& times, const Network& network, std::string about,
                        std::vector<TraceSlice> slices);

}  // namespace cortado
