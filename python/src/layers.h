#pragma once

#include "cortado/api/layer.h"

#include "src/bindings.h"

namespace cortado::python {

// Makes layers of type Python by a function of Python; None: there are none.
api::MakeUserLayer layers_by(py::object function);

}  // namespace cortado::python
