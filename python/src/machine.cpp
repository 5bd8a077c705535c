#include "cortado/api/machine.h"

#include "src/bindings.h"

namespace cortado::python {
namespace {

py::dict device_of(const api::Machine& machine, int index) {
  const api::Machine::Device device = machine.device(index);
  py::dict row;
  row["name"] = device.name;
  row["node"] = device.node;
  row["peak_flops"] = device.peak_flops;
  row["bf16_peak_flops"] = device.bf16_peak_flops;
  row["memory_bandwidth"] = device.memory_bandwidth;
  row["memory_bytes"] = device.memory_bytes;
  return row;
}

}  // namespace

void bind_machine(py::module_& module) {
  using api::Machine;
  py::class_<Machine>(
      module, "Machine",
      "Devices and their links: a ready machine by name, or a file (.json, or a path with '/').")
      .def(py::init<const std::string&>(), py::arg("name_or_file"))
      .def_static("from_text", &Machine::from_text, py::arg("json"), py::arg("name_in_errors") = "machine")
      .def_static("ready", &Machine::ready, "Names of the ready machines.")
      .def_property_readonly("name", &Machine::name)
      .def_property_readonly("devices", &Machine::devices, "Number of devices.")
      .def_property_readonly("nodes", &Machine::nodes, "Number of nodes.")
      .def(
          "device", &device_of, py::arg("index"),
          "A dict: name, node, peak_flops and bf16_peak_flops (a second), memory_bandwidth (bytes a second), "
          "memory_bytes.")
      .def(
          "table",
          [](const Machine& machine) {
            py::list rows;
            for (int d = 0; d < machine.devices(); ++d) rows.append(device_of(machine, d));
            return rows;
          },
          "device(0), device(1), ...")
      .def("first", &Machine::first, py::arg("devices"), "The machine of the first so many devices.")
      .def("text", &Machine::text, "JSON, as from_text takes it.")
      .def("__repr__", [](const Machine& machine) {
        return "<cortado.Machine " + machine.name() + ", " + std::to_string(machine.devices()) + " devices>";
      });
  py::implicitly_convertible<py::str, Machine>();
}

}  // namespace cortado::python
