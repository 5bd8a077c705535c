#pragma once

#include <memory>
#include <vector>

#include "cortado/device/runtime.h"
#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// When a device that works after it is told did the steps of the compute lane, by its own clock.
class StepClock {
 public:
  StepClock(const Program& program, device::DeviceRuntime& device);
  void start();                 // of an iteration
  void after(StepIndex index);  // the device has been given all that the step does
  // Once the device has done all: a step begins where the one before it ended.
  void write_to(Timeline& timeline) const;

 private:
  device::Queue& queue_;
  std::unique_ptr<device::Event> started_;
  IndexedVector<StepIndex, std::unique_ptr<device::Event>> ended_;  // null: of another lane
  std::vector<StepIndex> steps_;                                    // of this iteration
};

}  // namespace cortado
