#include "cortado/layers/user_defined.h"

#include <algorithm>
#include <concepts>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/spoken_order.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/spoken.h"
#include "cortado/kernels/reference/whole.h"

namespace cortado {
namespace {

using reference::Spoken;

// The program may have changed what is not its to change.
void check_size(size_t has, int64_t wanted) {
  if (static_cast<int64_t>(has) != wanted)
    throw UserError(
        fmt::format("a tensor of the layer has {} elements, the net {}; reshape the tops alone, and to the "
                    "shapes that they had when the net was made",
                    has, wanted));
}

// Copies a tensor to the program, and back.
template <typename T>
void give(const Shape& shape, const T* from, std::span<float> to) {
  check_size(to.size(), shape.size());
  if constexpr (std::same_as<T, float>) {
    to_spoken(shape, from, to.data());
  } else {
    const Spoken<const T> tensor(shape, from);
    for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<float>(tensor[static_cast<int64_t>(i)]);
  }
}
template <typename T>
void take(const Shape& shape, std::span<const float> from, T* to) {
  check_size(from.size(), shape.size());
  if constexpr (std::same_as<T, float>) {
    from_spoken(shape, from.data(), to);
  } else {
    const Spoken<T> tensor(shape, to);
    for (size_t i = 0; i < from.size(); ++i) tensor[static_cast<int64_t>(i)] = from[i];
  }
}

// Calls the program, whose tensors are its own: what it keeps of them stays.
template <typename T>
class UserDefinedReference : public KernelOf<T> {
 public:
  explicit UserDefinedReference(const Task& task) : task_(task) {
    require_whole_tensors(task);
    for (const ParameterSpec& spec : layer().parameters(task.inputs))
      parameters_.push_back(spec.shape.size());
  }
  std::string name() const override { return "program"; }

  void forward(const ArgumentsOf<T>& a) override {
    check_shapes(layer().reshape(task_.inputs));
    give_bottoms(a);
    give_parameters(a);
    code().forward();
    for (size_t i = 0; i < code().tops.size(); ++i)
      take(task_.outputs[i], code().tops[i]->values(), a.outputs[i]);
    for (size_t i = 0; i < parameters_.size(); ++i) copy(i, code().parameters[i]->values(), a.parameters[i]);
  }

  void backward(const ArgumentsOf<T>& a) override {
    give_bottoms(a);
    for (size_t i = 0; i < code().tops.size(); ++i) give_top(a, i);
    give_parameters(a);
    for (const auto& parameter : code().parameters) std::ranges::fill(parameter->gradient(), 0.F);
    code().backward(task_.input_gradients);
    for (size_t i = 0; i < code().bottoms.size(); ++i)
      if (a.input_gradients[i]) take(task_.inputs[i], code().bottoms[i]->gradient(), a.input_gradients[i]);
    for (size_t i = 0; i < parameters_.size(); ++i)
      if (a.parameter_gradients[i]) copy(i, code().parameters[i]->gradient(), a.parameter_gradients[i]);
  }

 private:
  const UserDefined& layer() const { return dynamic_cast<const UserDefined&>(task_.layer()); }
  UserLayer& code() const { return layer().code(); }

  // A source that has brought no batch yet has no memory; a gradient may be asked for all the same.
  void give_bottoms(const ArgumentsOf<T>& a) {
    for (size_t i = 0; i < code().bottoms.size(); ++i)
      if (a.inputs[i]) give(task_.inputs[i], a.inputs[i], code().bottoms[i]->values());
  }

  void give_parameters(const ArgumentsOf<T>& a) {
    const int count = static_cast<int>(parameters_.size());
    check_count("parameters, as when the net was made,", code().parameters.size(), count, count);
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const std::span<float> values = code().parameters[i]->values();
      check_size(values.size(), parameters_[i]);
      std::transform(a.parameters[i], a.parameters[i] + values.size(), values.begin(),
                     [](T value) { return static_cast<float>(value); });
    }
  }

  void copy(size_t parameter, std::span<const float> from, T* to) const {
    check_size(from.size(), parameters_[parameter]);
    std::ranges::copy(from, to);
  }

  void give_top(const ArgumentsOf<T>& a, size_t top) {
    give(task_.outputs[top], a.outputs[top], code().tops[top]->values());
    const std::span<float> gradient = code().tops[top]->gradient();
    if (a.output_gradients[top])
      give(task_.outputs[top], a.output_gradients[top], gradient);
    else
      std::ranges::fill(gradient, 0.F);
  }

  void check_shapes(const std::vector<Shape>& now) const {
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i] != task_.outputs[i])
        throw UserError(
            fmt::format("its reshape() gives top {} the shape {}, the net was made with {}; keep the "
                        "shape, or reshape an input of the net",
                        i, now[i].text(), task_.outputs[i].text()));
  }

  Task task_;
  std::vector<int64_t> parameters_;  // their sizes
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_user_defined_reference(const Task& task) {
  return std::make_unique<UserDefinedReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_user_defined_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_user_defined_reference<double>(const Task&);

}  // namespace cortado
