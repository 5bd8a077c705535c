#pragma once

#include <exception>
#include <vector>

#include "cortado/api/trainer.h"

#include "src/bindings.h"

namespace cortado::python {

// Passes the events of a training on to functions of Python, and looks for signals (Ctrl-C) after each
// iteration. What they raise stops the training after the iteration at hand.
class Events : public api::Observer {
 public:
  // Functions of Python, or None.
  struct Functions {
    py::object iteration_begins, gradients, iteration, test, snapshot;
  };
  void add(Functions functions) { functions_.push_back(std::move(functions)); }

  void iteration_begins(int64_t iteration) override;
  void gradients(int64_t iteration) override;
  void iteration(const api::Iteration& iteration) override;
  void test(const api::TestResult& test) override;
  void snapshot(int64_t iteration, const std::string& path) override;

  const api::StopToken& stop() const { return stop_; }
  // Ends a call of the trainer: forgets that it was asked to stop, and rethrows what was raised meanwhile.
  // With the interpreter's lock.
  void end();

 private:
  void call(py::object Functions::*event, const std::function<void(const py::object&)>& call);

  std::vector<Functions> functions_;
  api::StopToken stop_;
  std::exception_ptr raised_;
};

py::dict row_of(const api::TestResult& test);

}  // namespace cortado::python
