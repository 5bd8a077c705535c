#pragma once

#include <span>

#include "cortado/api/tensor.h"

#include "src/bindings.h"

namespace cortado::python {

// Row-major floats, converted where they are not.
using Array = py::array_t<float, py::array::c_style | py::array::forcecast>;

py::tuple tuple_of(const api::Shape& shape);
api::Shape shape_of(const py::array& array);

// An array that takes over the tensor's memory.
py::array array_of(api::Tensor&& tensor);
// An array on memory that `owner` keeps.
py::array view_of(const api::Shape& shape, float* values, const py::handle& owner);
std::span<const float> values_of(const Array& array);

py::list table_of(const std::vector<api::Output>& outputs);  // a dict each

}  // namespace cortado::python
