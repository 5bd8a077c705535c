#include "cortado/measure/job_prediction.h"

namespace cortado {

JobPrediction predict_on_job(const Network& network, const CompileOptions& options, Communicator& job,
                             const Notices& notify) {
  JobCosts costs(job, options.kernels.kernels, notify);
  const std::vector<int> nodes = costs.machine().node_of_devices();
  JobPrediction predicted{predict(network, options, costs.costs(), nodes),
                          simulate_job(network, options.strategies, options.schedule, costs.simulated()),
                          costs.machine().machine(), nodes};
  costs.save();
  return predicted;
}

}  // namespace cortado
