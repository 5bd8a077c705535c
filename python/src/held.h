#pragma once

#include <memory>

#include "src/bindings.h"

namespace cortado::python {

// A Python object that threads without the interpreter's lock may copy and drop.
inline std::shared_ptr<const py::object> held(py::object object) {
  return {new py::object(std::move(object)), [](const py::object* of) {
            const py::gil_scoped_acquire lock;
            delete of;
          }};
}

}  // namespace cortado::python
