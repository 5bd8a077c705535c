#include "src/layers.h"

#include "src/arrays.h"
#include "src/held.h"

namespace cortado::python {
namespace {

using api::UserTensor;

// An object of Python with pycaffe's setup(), reshape(), forward(), backward() and blobs.
class PythonLayer : public api::UserLayer {
 public:
  explicit PythonLayer(py::object object) : object_(held(std::move(object))) {}

  void set_up() override {
    const py::gil_scoped_acquire lock;
    object_->attr("setup")(bottoms, tops);
    parameters = object_->attr("blobs").cast<api::UserTensors>();
  }
  void reshape() override { call("reshape", bottoms, tops); }
  void forward() override { call("forward", bottoms, tops); }
  void backward(const std::vector<bool>& propagate_down) override {
    call("backward", tops, propagate_down, bottoms);
  }

 private:
  template <typename... Arguments>
  void call(const char* function, const Arguments&... arguments) {
    const py::gil_scoped_acquire lock;
    object_->attr(function)(arguments...);
  }

  std::shared_ptr<const py::object> object_;
};

py::dict dict_of(const api::UserLayerText& text) {
  py::dict fields;
  fields["name"] = text.name;
  fields["module"] = text.module;
  fields["layer"] = text.layer;
  fields["param_str"] = text.parameters;
  fields["phase"] = text.is_training ? api::Phase::train : api::Phase::test;
  return fields;
}

// An array on the tensor's memory, which lives as long as the array.
py::array array_on(const UserTensor& tensor, std::span<float> values) {
  auto* memory = new std::shared_ptr<void>(tensor.memory());
  const py::capsule owner(memory, [](void* of) { delete static_cast<std::shared_ptr<void>*>(of); });
  return view_of(tensor.shape(), values.data(), owner);
}

api::Shape extents_of(const py::args& extents) {
  const bool in_one = extents.size() == 1 && !PyIndex_Check(extents[0].ptr());
  return in_one ? extents[0].cast<api::Shape>() : extents.cast<api::Shape>();
}

// An extent by pycaffe's older names of four axes.
int64_t legacy_extent(const UserTensor& tensor, size_t axis) {
  return axis < tensor.shape().size() ? tensor.shape()[axis] : 1;
}

}  // namespace

api::MakeUserLayer layers_by(py::object function) {
  if (function.is_none()) return {};
  return [function =
              held(std::move(function))](const api::UserLayerText& text) -> std::shared_ptr<api::UserLayer> {
    const py::gil_scoped_acquire lock;
    py::object layer = (*function)(dict_of(text));
    if (layer.is_none()) return nullptr;
    return std::make_shared<PythonLayer>(std::move(layer));
  };
}

void bind_layers(py::module_& module) {
  py::class_<UserTensor, std::shared_ptr<UserTensor>> tensor(
      module, "LayerTensor",
      "A tensor of a layer that Python computes. `data` and `diff` are arrays on its memory, in the order N, "
      "C, (D,) "
      "H, W.");
  tensor
      .def(
          py::init([](const py::args& extents) { return std::make_shared<UserTensor>(extents_of(extents)); }))
      .def_property_readonly("data", [](const UserTensor& of) { return array_on(of, of.values()); })
      .def_property_readonly("diff", [](const UserTensor& of) { return array_on(of, of.gradient()); })
      .def_property_readonly("shape", [](const UserTensor& of) { return tuple_of(of.shape()); })
      .def_property_readonly("count", &UserTensor::size)
      .def(
          "reshape", [](UserTensor& of, const py::args& extents) { of.reshape(extents_of(extents)); },
          "Gives it another shape: reshape(2, 3) or reshape((2, 3)). Where the number of elements changes, "
          "they are "
          "new and zero.");
  size_t axis = 0;
  for (const char* name : {"num", "channels", "height", "width"})
    tensor.def_property_readonly(name,
                                 [axis = axis++](const UserTensor& of) { return legacy_extent(of, axis); });
}

}  // namespace cortado::python
