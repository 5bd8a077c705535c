#include "cortado/api/network.h"

#include "src/arrays.h"
#include "src/layers.h"

namespace cortado::python {
namespace {

using api::Network;
using api::NetworkOptions;

NetworkOptions options_of(api::Phase phase, int level, std::vector<std::string> stages, int64_t batch,
                          std::string input_shape, std::vector<std::string> sources, api::Precision precision,
                          py::object layers) {
  return {.phase = phase,
          .level = level,
          .stages = std::move(stages),
          .batch = batch,
          .input_shape = std::move(input_shape),
          .sources = std::move(sources),
          .precision = precision,
          .user_layers = layers_by(std::move(layers))};
}

py::dict shapes_of(const std::vector<api::NamedShape>& named) {
  py::dict shapes;
  for (const api::NamedShape& each : named) shapes[py::str(each.name)] = tuple_of(each.shape);
  return shapes;
}

py::list layer_rows(const Network& network) {
  py::list rows;
  for (const Network::Layer& layer : network.layers()) {
    py::dict row;
    row["name"] = layer.name;
    row["type"] = layer.type;
    row["inputs"] = layer.inputs;
    row["outputs"] = layer.outputs;
    row["parameters"] = layer.parameters;
    row["loss_weights"] = layer.loss_weights;
    row["forward_flops"] = layer.forward_flops;
    rows.append(row);
  }
  return rows;
}

// Says the options of from_file and from_text once.
template <typename Class, typename Make, typename... Arguments>
void def_reader(Class& network, const char* name, const char* text, Make make, Arguments... arguments) {
  network.def_static(name, make, text, arguments..., py::kw_only(), py::arg("phase") = api::Phase::train,
                     py::arg("level") = 0, py::arg("stages") = std::vector<std::string>{},
                     py::arg("batch") = 0, py::arg("input_shape") = "",
                     py::arg("sources") = std::vector<std::string>{},
                     py::arg("precision") = api::Precision::f32, py::arg("layers") = py::none());
}

}  // namespace

void bind_network(py::module_& module) {
  py::enum_<api::Phase>(module, "Phase").value("train", api::Phase::train).value("test", api::Phase::test);
  py::enum_<api::Precision>(module, "Precision")
      .value("f32", api::Precision::f32)
      .value("bf16", api::Precision::bf16);

  module.def("layer_types", &api::layer_types, "Types of Caffe's layers that can be in a network.");
  py::class_<Network> network(module, "Network",
                              "A network of a Caffe prototxt. A value: copies share what never changes.");
  def_reader(
      network, "from_file",
      "Reads a model file. UserError names file, line and field.\n\n"
      "layers: function(dict) makes a layer of type Python, an object as cortado.caffe.Layer is; the dict "
      "has name, "
      "module, layer, param_str, phase. None: there are none",
      [](const std::string& path, api::Phase phase, int level, std::vector<std::string> stages, int64_t batch,
         std::string input_shape, std::vector<std::string> sources, api::Precision precision,
         py::object layers) {
        return Network::from_file(path,
                                  options_of(phase, level, std::move(stages), batch, std::move(input_shape),
                                             std::move(sources), precision, std::move(layers)));
      },
      py::arg("path"));
  def_reader(
      network, "from_text", "The same of a model file's text.",
      [](const std::string& text, const std::string& name, api::Phase phase, int level,
         std::vector<std::string> stages, int64_t batch, std::string input_shape,
         std::vector<std::string> sources, api::Precision precision, py::object layers) {
        return Network::from_text(text,
                                  options_of(phase, level, std::move(stages), batch, std::move(input_shape),
                                             std::move(sources), precision, std::move(layers)),
                                  name);
      },
      py::arg("text"), py::arg("name_in_errors") = "net");
  network.def("warnings", &Network::warnings, "What has no effect in the file, a line each.")
      .def_property_readonly("name", &Network::name)
      .def("layers", &layer_rows,
           "In execution order, a dict each: name, type, inputs, outputs, parameters (names), loss_weights "
           "(of outputs), forward_flops.")
      .def(
          "tensors",
          [](const Network& net) {
            py::list rows;
            for (const api::NamedShape& each : net.tensors())
              rows.append(py::make_tuple(each.name, tuple_of(each.shape)));
            return rows;
          },
          "(name, shape) in the order of the layers that make them; a layer in place makes a second one.")
      .def(
          "parameters", [](const Network& net) { return shapes_of(net.parameters()); },
          "Shapes by name ('conv1/weight').")
      .def(
          "tensor", [](const Network& net, const std::string& name) { return tuple_of(net.tensor(name)); },
          py::arg("name"), "Shape of the last tensor of that name.")
      .def_property_readonly("parameter_count", &Network::parameter_count)
      .def_property_readonly("batch", &Network::batch)
      .def("with_batch", &Network::with_batch, py::arg("samples"), "The same net with another batch size.")
      .def("__repr__", [](const Network& net) { return "<cortado.Network " + net.name() + ">"; });
}

}  // namespace cortado::python
