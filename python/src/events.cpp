#include "src/events.h"

#include "src/arrays.h"

namespace cortado::python {
namespace {

py::dict row_of(const api::Iteration& iteration) {
  py::dict row;
  row["number"] = iteration.number;
  row["loss"] = iteration.loss;
  row["smoothed_loss"] = iteration.smoothed_loss;
  row["learning_rate"] = iteration.learning_rate;
  row["samples"] = iteration.samples;
  row["seconds"] = iteration.seconds;
  row["data_wait"] = iteration.data_wait;
  row["exposed_communication"] = iteration.exposed_communication;
  row["communication"] = iteration.communication;
  row["display"] = iteration.display;
  row["updated"] = iteration.updated;
  row["outputs"] = table_of(iteration.outputs);
  return row;
}

}  // namespace

py::dict row_of(const api::TestResult& test) {
  py::dict row;
  row["iteration"] = test.iteration;
  row["net"] = test.net;
  row["outputs"] = table_of(test.outputs);
  row["loss"] = test.loss;
  row["seconds"] = test.seconds;
  return row;
}

// Calls those that are given, and looks for signals.
void Events::call(py::object Functions::*event, const std::function<void(const py::object&)>& call) {
  const py::gil_scoped_acquire lock;
  try {
    for (const Functions& functions : functions_)
      if (!(functions.*event).is_none()) call(functions.*event);
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  } catch (...) {
    if (!raised_) raised_ = std::current_exception();
    stop_.request_stop();
  }
}

void Events::iteration_begins(int64_t iteration) {
  call(&Functions::iteration_begins, [&](const py::object& function) { function(iteration); });
}

void Events::gradients(int64_t iteration) {
  call(&Functions::gradients, [&](const py::object& function) { function(iteration); });
}

void Events::iteration(const api::Iteration& iteration) {
  call(&Functions::iteration, [&](const py::object& function) { function(row_of(iteration)); });
}

void Events::test(const api::TestResult& test) {
  call(&Functions::test, [&](const py::object& function) { function(row_of(test)); });
}

void Events::snapshot(int64_t iteration, const std::string& path) {
  call(&Functions::snapshot, [&](const py::object& function) { function(iteration, path); });
}

void Events::end() {
  stop_.reset();
  if (const std::exception_ptr raised = std::exchange(raised_, nullptr)) std::rethrow_exception(raised);
}

}  // namespace cortado::python
