#include "cortado/api/error.h"

#include "src/bindings.h"

namespace cortado::python {

void bind_errors(py::module_& module) {
  py::register_exception<api::UserError>(module, "UserError", PyExc_ValueError);
  py::register_exception<api::PeerError>(module, "PeerError", PyExc_RuntimeError);
  py::register_exception<api::InternalError>(module, "InternalError", PyExc_RuntimeError);
}

}  // namespace cortado::python
