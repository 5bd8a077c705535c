#pragma once

#include <string>
#include <vector>

#include "cortado/measure/job_costs.h"
#include "cortado/sim/predict.h"

namespace cortado {

// What an iteration should take on this job's ranks, by costs measured there.
struct JobPrediction {
  Prediction prediction;   // step by step, nothing hidden
  SimulatedJob simulated;  // messages travel while computing where the program lets them
  Machine machine;
  std::vector<int> nodes;  // of the ranks
};

// All ranks call it. `device`: this rank's.
JobPrediction predict_on_job(const Network& network, const CompileOptions& options, Communicator& job,
                             const Notices& notify = nullptr, device::DeviceRuntime& device = device::host());

}  // namespace cortado
