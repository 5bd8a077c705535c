#include "cortado/api/simulation.h"

#include "src/bindings.h"

namespace cortado::python {
namespace {

using api::Simulation;

py::list devices_of(const Simulation& simulation) {
  py::list rows;
  for (const Simulation::Device& device : simulation.devices()) {
    py::dict row;
    row["end"] = device.end;
    row["computing"] = device.computing;
    row["communicating"] = device.communicating;
    row["exposed_communication"] = device.exposed_communication;
    rows.append(row);
  }
  return rows;
}

py::list timeline_of(const Simulation& simulation) {
  py::list rows;
  for (const Simulation::Step& step : simulation.timeline()) {
    py::dict row;
    row["device"] = step.device;
    row["lane"] = step.lane == Simulation::Lane::compute ? "compute" : "communication";
    row["name"] = step.name;
    row["category"] = step.category;
    row["layer"] = step.layer;
    row["begin"] = step.begin;
    row["end"] = step.end;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_simulation(py::module_& module) {
  py::class_<Simulation>(
      module, "Simulation",
      "An iteration from the middle of a training, as a machine would run it. All times are "
      "seconds.")
      .def_property_readonly("seconds", &Simulation::seconds)
      .def_property_readonly("exposed_communication", &Simulation::exposed_communication, "Of device 0.")
      .def_property_readonly("bytes", &Simulation::bytes, "That all devices send.")
      .def("devices", &devices_of,
           "A dict each: end, computing, communicating, exposed_communication (seconds).")
      .def("timeline", &timeline_of,
           "Steps by device and in order, a dict each: device, lane, name, category, layer, begin, end.")
      .def("text", &Simulation::text, "A table, as `cortado simulate` prints it.")
      .def("trace", &Simulation::trace, "For Perfetto, as `cortado simulate --trace` writes it.")
      .def("__str__", &Simulation::text);
  module.def("simulate", &api::simulate, py::arg("network"), py::arg("strategy"), py::arg("machine"),
             py::call_guard<py::gil_scoped_release>(), "Simulates one rank on each device of the machine.");
}

}  // namespace cortado::python
