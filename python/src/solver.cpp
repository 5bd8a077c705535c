#include "cortado/api/solver.h"

#include "src/bindings.h"

namespace cortado::python {
namespace {

using api::Solver;
using api::SolverOptions;

// A member of the options by its name in Python.
template <typename Member>
void take(const py::dict& said, const char* name, Member& member) {
  if (said.contains(name)) {
    member = said[name].cast<Member>();
    said.attr("pop")(name);
  }
}

SolverOptions options_of(const py::dict& given) {
  const py::dict said(given.attr("copy")());
  SolverOptions o;
  take(said, "type", o.type);
  take(said, "base_lr", o.base_lr);
  take(said, "lr_policy", o.lr_policy);
  take(said, "gamma", o.gamma);
  take(said, "power", o.power);
  take(said, "stepsize", o.stepsize);
  take(said, "stepvalue", o.stepvalue);
  take(said, "momentum", o.momentum);
  take(said, "weight_decay", o.weight_decay);
  take(said, "max_iter", o.max_iter);
  take(said, "iter_size", o.iter_size);
  take(said, "clip_gradients", o.clip_gradients);
  take(said, "test_iter", o.test_iter);
  take(said, "test_interval", o.test_interval);
  take(said, "test_initialization", o.test_initialization);
  take(said, "average_loss", o.average_loss);
  take(said, "snapshot", o.snapshot);
  take(said, "snapshot_prefix", o.snapshot_prefix);
  take(said, "snapshot_format", o.snapshot_format);
  take(said, "snapshot_after_train", o.snapshot_after_train);
  take(said, "random_seed", o.random_seed);
  for (const auto& other : said)
    throw py::type_error("Solver: unknown option '" + py::str(other.first).cast<std::string>() +
                         "'; a field of a solver file is set with set(field, value)");
  return o;
}

}  // namespace

void bind_solver(py::module_& module) {
  py::class_<Solver>(module, "Solver",
                     "How a network is trained: a solver file, its text, or options with Caffe's names:\n"
                     "Solver(network, base_lr=0.01, momentum=0.9, max_iter=1000).")
      .def(py::init([](const api::Network& network, const py::kwargs& options) {
             return Solver(options_of(options), network);
           }),
           py::arg("network"))
      .def_static("from_file", &Solver::from_file, py::arg("path"))
      .def_static("from_text", py::overload_cast<const std::string&, const std::string&>(&Solver::from_text),
                  py::arg("text"), py::arg("name_in_errors") = "solver")
      .def_static(
          "from_text",
          py::overload_cast<const std::string&, const api::Network&, const std::string&>(&Solver::from_text),
          py::arg("text"), py::arg("network"), py::arg("name_in_errors") = "solver",
          "The solver's text, with a network in place of one that it names.")
      .def(
          "set",
          [](Solver& solver, const std::string& field, const py::object& value) -> Solver& {
            return solver.set(field, py::isinstance<py::bool_>(value)
                                         ? std::string(value.cast<bool>() ? "true" : "false")
                                         : py::str(value).cast<std::string>());
          },
          py::arg("field"), py::arg("value"), py::return_value_policy::reference_internal,
          "Sets a field of the solver file: set('base_lr', 0.02). Returns the solver.")
      .def(
          "override",
          [](Solver& solver, int level, const std::vector<std::string>& stages, int64_t batch,
             int64_t test_batch, const std::vector<std::string>& sources,
             const std::vector<std::string>& test_sources, const std::string& snapshot_format,
             std::optional<api::Precision> precision) -> Solver& {
            return solver.set(Solver::Overrides{level, stages, batch, test_batch, sources, test_sources,
                                                snapshot_format, precision});
          },
          py::kw_only(), py::arg("level") = 0, py::arg("stages") = std::vector<std::string>{},
          py::arg("batch") = 0, py::arg("test_batch") = 0, py::arg("sources") = std::vector<std::string>{},
          py::arg("test_sources") = std::vector<std::string>{}, py::arg("snapshot_format") = "",
          py::arg("precision") = std::nullopt, py::return_value_policy::reference_internal,
          "What replaces the file's own: level and stages of the training net, batch sizes, data "
          "('PATH' or 'LAYER=PATH'), snapshot format, precision of all nets. Returns the solver.")
      .def("warnings", &Solver::warnings, "Of the solver and its nets, a line each.");
}

}  // namespace cortado::python
