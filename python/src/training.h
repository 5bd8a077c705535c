#pragma once

#include <memory>

#include "src/data.h"
#include "src/events.h"

namespace cortado::python {

// A trainer with what it calls and reads from. It computes without the interpreter's lock, and ends without
// it, since its threads may wait for the lock.
class Training {
 public:
  Training(const api::Solver& solver, const ArrayData& data, const api::TrainerOptions& options);
  ~Training();
  Training(const Training&) = delete;

  api::Trainer& trainer() { return *trainer_; }
  Events& events() { return events_; }

  // Calls compute(trainer) without the lock, then raises what the events raised.
  template <typename Compute>
  auto computed(Compute compute) {
    const auto result = [&] {
      try {
        const py::gil_scoped_release release;
        return compute(*trainer_);
      } catch (...) {
        events_.end();  // what they raised came first
        throw;
      }
    }();
    events_.end();
    return result;
  }

 private:
  std::vector<py::object> arrays_;
  Events events_;
  std::unique_ptr<api::Trainer> trainer_;
};

}  // namespace cortado::python
