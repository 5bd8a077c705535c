#pragma once

#include <string>
#include <vector>

#include "cortado/report/run_report.h"
#include "cortado/report/time_report.h"
#include "cortado/sim/predict.h"
#include "cortado/sim/simulated_job.h"

namespace cortado {

// Writes index.html into the folder of --report, which is made where it is missing. Throws UserError.
void write_page(const std::string& folder, const std::string& page);

// Of a page made now by that command.
PageOrigin page_origin(const std::string& command_line);

// What a page tells of an iteration of a job, of which `slices` are all ranks'.
RunReport run_report_of(const TimeReport& times, const Network& network, std::string about,
                        std::vector<TraceSlice> slices);

// What was predicted of it: the simulated job, and layers that stand beside those measured.
RunPrediction run_prediction_of(const SimulatedJob& simulated, const std::vector<PredictedLayer>& layers,
                                const Network& network);

}  // namespace cortado
