#pragma once

#include <vector>

#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/report/run_report.h"
#include "cortado/report/time_report.h"
#include "cortado/report/trace.h"
#include "cortado/sim/predict.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

// Returns a simulated iteration as the report of a measured one; its layers are rank 0's.
TimeReport report_of(const SimulatedJob& simulated, const Network& network, const DeviceGraph& machine);

// The steps of all ranks.
std::vector<TraceSlice> slices_of_job(const SimulatedJob& job, const Network& network);

// A simulated iteration beside the measured one: `layers` are compare()'s.
RunPrediction run_prediction_of(const SimulatedJob& simulated, const std::vector<PredictedLayer>& layers,
                                const Network& network);

// Returns, for the page, an iteration simulated with a strategy of that name. `times`: what report_of()
// returns for it.
RunReport run_report_of(const SimulatedJob& simulated, const TimeReport& times, const Network& network,
                        const DeviceGraph& machine, const std::string& strategy);

}  // namespace cortado
