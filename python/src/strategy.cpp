#include "cortado/api/strategy.h"

#include "src/bindings.h"

namespace cortado::python {

void bind_strategy(py::module_& module) {
  using api::Strategy;
  py::class_<Strategy>(module, "Strategy",
                       "How layers are cut over ranks or devices: auto, a built-in name, random:SEED, or a "
                       "file (.json). Without a name: auto on several devices, single on one.")
      .def(py::init<>())
      .def(py::init<const std::string&>(), py::arg("name_or_file"))
      .def_static("from_text", &Strategy::from_text, py::arg("json"), py::arg("name_in_errors") = "strategy")
      .def_static("built_in", &Strategy::built_in, "Names of the built-in strategies.")
      .def(
          "with_schedule",
          [](const Strategy& strategy, const std::string& gradient_chunks, bool no_late_updates, bool halves,
             const std::vector<std::string>& replicate, const std::string& recompute,
             const std::string& memory_limit) {
            return strategy.with(
                {gradient_chunks, no_late_updates, halves, replicate, recompute, memory_limit});
          },
          py::kw_only(), py::arg("gradient_chunks") = "", py::arg("no_late_updates") = false,
          py::arg("halves") = false, py::arg("replicate") = std::vector<std::string>{},
          py::arg("recompute") = "", py::arg("memory_limit") = "",
          "The strategy with parts of its schedule replaced.")
      .def_property_readonly("name", &Strategy::name)
      .def("text", &Strategy::text, py::arg("network"), py::arg("devices"), "The JSON of a file.")
      .def("__repr__", [](const Strategy& strategy) { return "<cortado.Strategy " + strategy.name() + ">"; });
  py::implicitly_convertible<py::str, Strategy>();
}

}  // namespace cortado::python
