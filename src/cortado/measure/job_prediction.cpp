#include "cortado/measure/job_prediction.h"

#include "cortado/exec/device_kernels.h"

namespace cortado {

JobPrediction predict_on_job(const Network& network, const CompileOptions& options, Communicator& job,
                             const Notices& notify, device::DeviceRuntime& device) {
  // By one name at all ranks.
  const bool usual = options.kernels.kernels == kernels_on(device, "", false).kernels;
  const std::string kernels = usual ? "" : options.kernels.kernels;
  JobCosts costs(job, kernels, notify, device);
  const std::vector<int> nodes = costs.machine().node_of_devices();
  JobPrediction predicted{
      predict(network, options, costs.costs(), nodes),
      simulate_job(network, options.strategies, options.schedule, costs.simulated(), SimulatedRanks::all),
      costs.machine().machine(), nodes};
  costs.save();
  return predicted;
}

}  // namespace cortado
