#pragma once

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

// One function for each noun of the public face (docs/reference/api.md). Nothing is decided here: each
// binding passes on to the library.
namespace cortado::python {

namespace py = pybind11;

void bind_errors(py::module_& module);
void bind_machine(py::module_& module);
void bind_layers(py::module_& module);
void bind_network(py::module_& module);
void bind_solver(py::module_& module);
void bind_strategy(py::module_& module);
void bind_plan(py::module_& module);
void bind_simulation(py::module_& module);
void bind_data(py::module_& module);
void bind_net(py::module_& module);
void bind_trainer(py::module_& module);

}  // namespace cortado::python
