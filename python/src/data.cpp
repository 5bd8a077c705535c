#include "src/data.h"

#include "cortado/api/error.h"

#include "src/arrays.h"
#include "src/held.h"

namespace cortado::python {
namespace {

using api::BatchRequest;

// The tops of a request by name, as arrays on its memory.
py::dict tops_of(const BatchRequest& request) {
  py::dict tops;
  for (const BatchRequest::Top& top : request.tops)
    tops[py::str(top.name)] = view_of(top.shape, top.values.data(), py::none());
  return tops;
}

py::dict request_of(const BatchRequest& request) {
  py::dict fields;
  fields["layer"] = request.layer;
  fields["phase"] = request.phase;
  fields["number"] = request.number;
  fields["batch"] = request.batch;
  fields["begin"] = request.begin;
  fields["end"] = request.end;
  fields["tops"] = tops_of(request);
  return fields;
}

// Calls `function(request)`; what it returns, one array a top, is copied into the tops.
api::FillBatch fill_by(py::object function) {
  return [function = held(std::move(function))](BatchRequest& request) {
    const py::gil_scoped_acquire lock;
    const py::object filled = (*function)(request_of(request));
    if (filled.is_none()) return;
    const py::sequence arrays(filled);
    if (arrays.size() != request.tops.size())
      throw api::UserError("the function of its data returns " + std::to_string(arrays.size()) +
                           " arrays for " + std::to_string(request.tops.size()) + " tops");
    for (size_t top = 0; top < request.tops.size(); ++top) {
      py::array to = view_of(request.tops[top].shape, request.tops[top].values.data(), py::none());
      to[py::ellipsis()] = arrays[top];
    }
  };
}

void fill(ArrayData& to, const std::string& layer, py::object function,
          const std::vector<api::Shape>& sample_shapes, std::optional<api::Phase> phase) {
  api::FillBatch filling = fill_by(std::move(function));
  if (phase)
    to.data.fill(layer, *phase, filling, sample_shapes);
  else
    to.data.fill(layer, filling, sample_shapes);
}

void arrays(ArrayData& to, const std::string& layer, const std::vector<Array>& tops,
            std::optional<api::Phase> phase) {
  std::vector<std::span<const float>> spans;
  std::vector<api::Shape> sample_shapes;
  for (const Array& top : tops) {
    api::Shape shape = shape_of(top);
    if (shape.empty())
      throw api::UserError("data of layer '" + layer +
                           "': an array is a single number; give arrays of samples");
    shape.erase(shape.begin());
    sample_shapes.push_back(std::move(shape));
    spans.push_back(values_of(top));
    to.arrays.push_back(top);
  }
  if (phase)
    to.data.spans(layer, *phase, spans, sample_shapes);
  else
    to.data.spans(layer, spans, sample_shapes);
}

}  // namespace

void bind_data(py::module_& module) {
  py::class_<ArrayData>(
      module, "Data",
      "What source layers read in place of what the net's file names, by layer and phase (None: "
      "both phases).")
      .def(py::init<>())
      .def("arrays", &arrays, py::arg("layer"), py::arg("tops"), py::arg("phase") = std::nullopt,
           "Samples in memory, an array a top, samples first; read in order, over and over. A C-contiguous "
           "float32 array is read where it lies; another is copied and converted.")
      .def("fill", &fill, py::arg("layer"), py::arg("function"),
           py::arg("sample_shapes") = std::vector<api::Shape>{}, py::arg("phase") = std::nullopt,
           "function(request) fills a batch: it writes into the arrays request['tops'][name], which are the "
           "batch's own memory and valid during the call, or returns an array a top, which is copied. The "
           "other items of the dict: layer, phase, number (of the batch), batch (its samples), begin, end "
           "(samples wanted). It must give the same values for the same number.\n\n"
           "sample_shapes: a top's shape without the samples, [(1, 28, 28), ()]; layers that declare shapes "
           "(Input, MemoryData, DummyData) need none");
}

}  // namespace cortado::python
