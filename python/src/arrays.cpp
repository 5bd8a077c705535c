#include "src/arrays.h"

namespace cortado::python {

py::tuple tuple_of(const api::Shape& shape) {
  py::tuple extents(shape.size());
  for (size_t axis = 0; axis < shape.size(); ++axis) extents[axis] = shape[axis];
  return extents;
}

api::Shape shape_of(const py::array& array) { return {array.shape(), array.shape() + array.ndim()}; }

py::array array_of(api::Tensor&& tensor) {
  auto* owned = new api::Tensor(std::move(tensor));
  const py::capsule owner(owned, [](void* memory) { delete static_cast<api::Tensor*>(memory); });
  return view_of(owned->shape, owned->values.data(), owner);
}

py::array view_of(const api::Shape& shape, float* values, const py::handle& owner) {
  return py::array_t<float>(std::vector<py::ssize_t>(shape.begin(), shape.end()), values, owner);
}

std::span<const float> values_of(const Array& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

py::list table_of(const std::vector<api::Output>& outputs) {
  py::list rows;
  for (const api::Output& output : outputs) {
    py::dict row;
    row["name"] = output.name;
    row["value"] = output.value;
    row["loss_weight"] = output.loss_weight;
    rows.append(row);
  }
  return rows;
}

}  // namespace cortado::python
