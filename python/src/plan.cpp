#include "cortado/api/plan.h"

#include "cortado/api/sweep.h"

#include "src/bindings.h"

namespace cortado::python {
namespace {

using api::Plan;

py::dict row_of(const api::Configuration& configuration) {
  py::dict degrees;
  for (const auto& [dimension, degree] : configuration.degrees)
    degrees[py::str(std::string(1, dimension))] = degree;
  py::dict row;
  row["degrees"] = degrees;
  row["devices"] = configuration.devices;
  row["weights"] = configuration.weights;
  row["sync"] = configuration.sync;
  return row;
}

py::object row_of(const std::optional<Plan::Alternative>& alternative) {
  if (!alternative) return py::none();
  py::dict row;
  row["configuration"] = row_of(alternative->configuration);
  row["adds_seconds"] = alternative->adds_seconds;
  return row;
}

py::list layers_of(const Plan& plan) {
  py::list rows;
  for (const Plan::Layer& layer : plan.layers()) {
    py::dict row;
    row["name"] = layer.name;
    row["with"] = layer.with;
    row["configuration"] = row_of(layer.configuration);
    row["compute_seconds"] = layer.compute_seconds;
    row["sync_seconds"] = layer.sync_seconds;
    row["transfer_seconds"] = layer.transfer_seconds;
    row["bytes"] = layer.bytes;
    row["memory_bytes"] = layer.memory_bytes;
    row["runner_up"] = row_of(layer.runner_up);
    row["by_sample"] = row_of(layer.by_sample);
    rows.append(row);
  }
  return rows;
}

py::list baselines_of(const Plan& plan) {
  py::list rows;
  for (const Plan::Baseline& baseline : plan.baselines()) {
    py::dict row;
    row["name"] = baseline.name;
    row["seconds"] = baseline.seconds;
    row["bytes"] = baseline.bytes;
    row["memory_bytes"] = baseline.memory_bytes;
    row["fits"] = baseline.fits;
    rows.append(row);
  }
  return rows;
}

py::list frontier_of(const Plan& plan) {
  py::list rows;
  for (const Plan::Tradeoff& tradeoff : plan.frontier()) {
    py::dict row;
    row["seconds"] = tradeoff.seconds;
    row["memory_bytes"] = tradeoff.memory_bytes;
    row["fits"] = tradeoff.fits;
    row["chosen"] = tradeoff.chosen;
    rows.append(row);
  }
  return rows;
}

Plan plan_of(const api::Network& network, const api::Machine& machine, int devices, int64_t memory_bytes,
             int history, const std::string& dimensions, int frontier_points) {
  return api::plan(network, machine,
                   api::PlanOptions{.devices = devices,
                                    .memory_bytes = memory_bytes,
                                    .history = history,
                                    .dimensions = dimensions,
                                    .frontier_points = frontier_points});
}

py::list points_of(const api::Sweep& sweep) {
  py::list rows;
  for (const api::Sweep::Point& point : sweep.points()) {
    py::dict row, gains;
    row["devices"] = point.devices;
    row["batch"] = point.batch;
    row["bandwidth"] = point.bandwidth;
    row["price_per_hour"] = point.price_per_hour;
    row["fits"] = point.fits;
    row["bound"] = point.bound;
    row["seconds"] = point.seconds;
    row["simulated"] = point.simulated;
    row["compute_seconds"] = point.compute_seconds;
    row["exchange_seconds"] = point.exchange_seconds;
    row["sync_seconds"] = point.sync_seconds;
    row["images_per_second"] = point.images_per_second;
    row["efficiency"] = point.efficiency;
    row["memory_bytes"] = point.memory_bytes;
    row["price_per_million_images"] = point.price_per_million_images;
    for (const api::Sweep::LinkGain& gain : point.twice_as_fast) gains[py::str(gain.links)] = gain.seconds;
    row["twice_as_fast"] = gains;
    rows.append(row);
  }
  return rows;
}

py::list smallest_of(const api::Sweep& sweep) {
  py::list rows;
  for (const api::Sweep::Smallest& smallest : sweep.smallest()) {
    py::dict row;
    row["batch"] = smallest.batch;
    row["per_device"] = smallest.per_device;
    row["devices"] = smallest.devices;
    row["price_per_hour"] = smallest.price_per_hour;
    rows.append(row);
  }
  return rows;
}

api::Sweep sweep_of(const api::Network& network, const api::Machine& machine,
                    const std::vector<std::string>& axes, int64_t memory_bytes, int history,
                    const std::string& dimensions, int most_simulated) {
  return api::sweep(network, machine,
                    {.axes = axes,
                     .memory_bytes = memory_bytes,
                     .history = history,
                     .dimensions = dimensions,
                     .most_simulated = most_simulated});
}

void bind_sweep(py::module_& module) {
  py::class_<api::Sweep>(
      module, "Sweep", "A network planned and simulated on parts of a machine, with other batches and links.")
      .def("points", &points_of,
           "A dict each: devices, batch, bandwidth, price_per_hour, fits, bound, seconds, simulated, "
           "compute_seconds, exchange_seconds, sync_seconds, images_per_second, efficiency, memory_bytes, "
           "price_per_million_images, twice_as_fast (seconds by class of links).")
      .def("smallest", &smallest_of,
           "The fewest devices that hold each batch, a dict each: batch, per_device, devices (0: none do), "
           "price_per_hour.")
      .def("text", &api::Sweep::text, "A table, as `cortado plan --sweep` prints it.")
      .def("csv", &api::Sweep::csv)
      .def("json", &api::Sweep::json)
      .def("page", &api::Sweep::page, "HTML, as `cortado plan --sweep --report` writes it.")
      .def("__str__", &api::Sweep::text);
  module.def("sweep", &sweep_of, py::arg("network"), py::arg("machine"), py::arg("axes"), py::kw_only(),
             py::arg("memory_bytes") = 0, py::arg("history") = 1, py::arg("dimensions") = "",
             py::arg("most_simulated") = api::SweepOptions{}.most_simulated,
             py::call_guard<py::gil_scoped_release>(),
             "Plans and simulates every combination of `axes`: \"devices=4..64\", \"batch=256,32/device\", "
             "\"link=12,25\" (GB/s of the slowest links) or \"link=network:12,25\".\n\n"
             "most_simulated: devices of a point that is simulated; others are added up, as if nothing were "
             "hidden");
}

}  // namespace

void bind_plan(py::module_& module) {
  bind_sweep(module);
  py::class_<Plan>(module, "Plan",
                   "The cheapest way to cut each layer over a machine, and what it costs. Seconds are of one "
                   "iteration.")
      .def_property_readonly("seconds", &Plan::seconds)
      .def_property_readonly("lower_bound_seconds", &Plan::lower_bound_seconds,
                             "No plan that fits takes less.")
      .def_property_readonly("optimal", &Plan::optimal, "It is proven.")
      .def_property_readonly("limited_by_memory", &Plan::limited_by_memory)
      .def_property_readonly("bytes", &Plan::bytes, "That all devices send.")
      .def_property_readonly("memory_bytes", &Plan::memory_bytes, "Of the device that holds most.")
      .def("layers", &layers_of,
           "A dict each: name, with, configuration (degrees, devices, weights, sync), compute_seconds, "
           "sync_seconds, transfer_seconds, bytes, memory_bytes, runner_up, by_sample.")
      .def(
          "baselines", &baselines_of,
          "The built-in strategies by the same costs, a dict each: name, seconds, bytes, memory_bytes, fits.")
      .def("frontier", &frontier_of, "A dict each: seconds, memory_bytes, fits, chosen.")
      .def("strategy", &Plan::strategy)
      .def("text", &Plan::text, "A table, as `cortado plan` prints it.")
      .def("json", &Plan::json, "As `cortado plan --json` writes it.")
      .def("page", &Plan::page, "HTML, as `cortado plan --report` writes it.")
      .def("__str__", &Plan::text);
  module.def("plan", &plan_of, py::arg("network"), py::arg("machine"), py::kw_only(), py::arg("devices") = 0,
             py::arg("memory_bytes") = 0, py::arg("history") = 1, py::arg("dimensions") = "",
             py::arg("frontier_points") = 0, py::call_guard<py::gil_scoped_release>(),
             "Plans the first `devices` of a machine (0: all).\n\n"
             "memory_bytes: that a device may hold; 0: as the machine's smallest device\n"
             "history: tensors of a parameter's size that the solver keeps; 2 for Adam and AdaDelta\n"
             "dimensions: along which layers may be cut, letters of ncdhwr; empty: all\n"
             "frontier_points: of the time-memory frontier; 0: it is not searched");
}

}  // namespace cortado::python
