#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cortado/api/machine.h"
#include "cortado/api/network.h"
#include "cortado/api/strategy.h"

namespace cortado::api {

// An iteration from the middle of a training, as a machine would run it. All times are seconds. A value.
class Simulation {
 public:
  enum class Lane { compute, communication };
  struct Step {
    int device = 0;
    Lane lane = Lane::compute;
    std::string name, category;  // "conv1+relu1 forward", "forward"
    std::string layer;           // empty: the step belongs to none
    double begin = 0, end = 0;   // since the iteration began; a message may begin before it
  };
  struct Device {
    double end = 0;                           // of its last step
    double computing = 0, communicating = 0;  // busy: of each lane, messages one by one
    double exposed_communication = 0;         // while computing waited for messages
  };

  double seconds() const;                // of the iteration
  double exposed_communication() const;  // of device 0
  std::vector<Device> devices() const;
  std::vector<Step> timeline() const;  // by device, in the order of its steps
  int64_t bytes() const;               // that all devices send

  std::string text() const;   // a table, as `cortado simulate` prints it
  std::string trace() const;  // for Perfetto, as `cortado simulate --trace` writes it

  struct Impl;
  explicit Simulation(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<const Impl> impl_;
};

// Simulates one rank on each device of the machine. `auto` is planned for the machine. Throws UserError where
// the strategy does not fit.
Simulation simulate(const Network& network, const Strategy& strategy, const Machine& machine);

}  // namespace cortado::api
