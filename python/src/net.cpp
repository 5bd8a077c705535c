#include "cortado/api/net.h"

#include "src/arrays.h"
#include "src/data.h"

namespace cortado::python {
namespace {

using api::Net;

Net net_of(const api::Network& network, const ArrayData* data, int threads, int reader_threads,
           const std::string& kernels, uint64_t seed, bool gradients) {
  return Net(network, data ? data->data : api::Data(),
             api::NetOptions{.threads = threads,
                             .reader_threads = reader_threads,
                             .kernels = kernels,
                             .seed = seed,
                             .gradients = gradients,
                             .notice = {}});
}

using Read = void (Net::*)(const std::string&, std::span<float>) const;
using ReadTensor = api::Tensor (Net::*)(const std::string&) const;
using Write = void (Net::*)(const std::string&, std::span<const float>);

// A copy or, with `out`, the values in an array that is given.
void def_read(py::class_<Net>& net, const char* name, ReadTensor tensor, Read read, const char* text) {
  net.def(
      name,
      [tensor, read](const Net& of, const std::string& what,
                     std::optional<py::array_t<float>> out) -> py::array {
        if (!out) return array_of((of.*tensor)(what));
        if (!(out->flags() & py::array::c_style))
          throw py::value_error("out: give a C-contiguous array of float32");
        (of.*read)(what, {out->mutable_data(), static_cast<size_t>(out->size())});
        return *out;
      },
      py::arg("name"), py::arg("out").noconvert() = std::nullopt, text);
}

void def_write(py::class_<Net>& net, const char* name, Write write, const char* text) {
  net.def(
      name,
      [write](Net& of, const std::string& what, const Array& values) {
        (of.*write)(what, values_of(values));
      },
      py::arg("name"), py::arg("values"), text);
}

void bind_values(py::class_<Net>& net) {
  def_read(net, "values", &Net::values, &Net::values,
           "A copy of a blob's values or, with `out`, its values copied there.");
  def_write(net, "set_values", &Net::set_values, "Copies values into a blob.");
  def_read(
      net, "gradient", &Net::gradient, &Net::gradient,
      "A copy of a blob's gradient (zeros where backward() computes none), into `out` where it is given.");
  def_write(net, "set_gradient", &Net::set_gradient, "Copies values into a blob's gradient.");
  def_read(net, "parameter", &Net::parameter, &Net::parameter,
           "A copy of a parameter ('conv1/weight'), into `out` where it is given.");
  def_write(net, "set_parameter", &Net::set_parameter, "Copies values into a parameter.");
  def_read(net, "parameter_gradient", &Net::parameter_gradient, &Net::parameter_gradient,
           "A copy of the sum of a parameter's gradients, into `out` where it is given.");
  def_write(net, "set_parameter_gradient", &Net::set_parameter_gradient,
            "Copies values into the sum of a parameter's gradients.");
  net.def("clear_parameter_gradients", &Net::clear_parameter_gradients, "Makes them zeros.")
      .def("has_gradient", &Net::has_gradient, py::arg("blob"), "backward() computes one.");
}

}  // namespace

void bind_net(py::module_& module) {
  py::class_<Net> net(module, "Net",
                      "A network whose layers run one by one and whose every value can be read and written "
                      "between. Values are copied, in the order N, C, (D,) H, W, float32.");
  py::enum_<Net::WeightsFormat>(net, "WeightsFormat")
      .value("by_name", Net::WeightsFormat::by_name)
      .value("caffemodel", Net::WeightsFormat::caffemodel)
      .value("hdf5", Net::WeightsFormat::hdf5);
  net.def(py::init(&net_of), py::arg("network"), py::arg("data") = py::none(), py::kw_only(),
          py::arg("threads") = 0, py::arg("reader_threads") = 1, py::arg("kernels") = "", py::arg("seed") = 1,
          py::arg("gradients") = true, py::keep_alive<1, 3>())
      .def_property_readonly("network", [](const Net& of) { return of.network(); })
      .def_property_readonly("phase", &Net::phase)
      .def("forward", &Net::forward, py::arg("first") = "", py::arg("last") = "",
           py::call_guard<py::gil_scoped_release>(),
           "Computes the layers from `first` to `last` (empty: all); returns the sum of their losses.")
      .def("backward", &Net::backward, py::arg("first") = "", py::arg("last") = "",
           py::call_guard<py::gil_scoped_release>(),
           "Computes gradients from the layer `first` back to `last`, beginning with the gradients that the "
           "outputs of `first` have. Gradients of parameters are added to what there is.")
      .def_property_readonly("blobs", &Net::blobs, "Names, in the order of the layers that make them.")
      .def_property_readonly("inputs", &Net::inputs, "Blobs of Input layers.")
      .def_property_readonly("outputs", &Net::outputs, "Blobs that no layer reads.")
      .def(
          "shape", [](const Net& of, const std::string& blob) { return tuple_of(of.shape(blob)); },
          py::arg("blob"))
      .def("reshape", &Net::reshape, py::arg("inputs"),
           "Gives blobs of Input layers other shapes ({blob: shape}), and all blobs after them. Parameters "
           "stay, and so "
           "do the values of source layers whose shapes do; all other values are zeros.")
      .def("share_with", &Net::share_with, py::arg("other"), py::keep_alive<1, 2>(),
           "From now on, layers of the same names have the parameters of `other`.")
      .def(
          "feed", [](Net& of, const ArrayData& data) { of.feed(data.data); }, py::arg("data"),
          py::keep_alive<1, 2>(), "From now on, source layers that `data` names bring its batches.")
      .def(
          "load_weights",
          [](Net& of, const std::string& path) {
            const api::PassedOver passed = of.load_weights(path);
            py::dict layers;
            layers["of_network"] = passed.of_network;
            layers["of_file"] = passed.of_file;
            return layers;
          },
          py::arg("path"),
          "Reads .caffemodel, .h5 or .safetensors. Returns the layers passed over: of_network, of_file.")
      .def("save_weights", &Net::save_weights, py::arg("path"),
           py::arg("format") = Net::WeightsFormat::by_name,
           "hdf5 where the path ends in .h5, else caffemodel.");
  bind_values(net);
}

}  // namespace cortado::python
