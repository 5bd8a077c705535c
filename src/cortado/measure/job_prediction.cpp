#include "cortado/measure/job_prediction.h"

#include "cortado/base/error.h"

namespace cortado {

JobPrediction predict_on_job(const Network& network, const CompileOptions& options, Communicator& job,
                             const Notices& notify) {
  if (options.kernels.no_other || options.kernels.mixed_devices)
    throw UserError("what steps take is not predicted on a GPU, or on devices of several kinds");
  JobCosts costs(job, options.kernels.kernels, notify);
  const std::vector<int> nodes = costs.machine().node_of_devices();
  JobPrediction predicted{predict(network, options, costs.costs(), nodes),
                          simulate_job(network, options.strategies, options.schedule, costs.simulated()),
                          costs.machine().machine(), nodes};
  costs.save();
  return predicted;
}

}  // namespace cortado
