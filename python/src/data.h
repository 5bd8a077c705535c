#pragma once

#include <map>
#include <vector>

#include "cortado/api/data.h"

#include "src/bindings.h"

namespace cortado::python {

// api::Data with the arrays that its spans lie in.
struct ArrayData {
  api::Data data;
  std::vector<py::object> arrays;
};

}  // namespace cortado::python
