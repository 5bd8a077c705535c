#include "cortado/layers/user_defined.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

std::vector<int64_t> extents_of(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

Shape shape_of(const UserTensor& tensor) { return Shape(std::span(tensor.shape())); }

}  // namespace

void UserTensor::reshape(std::vector<int64_t> shape) {
  const bool positive = std::ranges::all_of(shape, [](int64_t extent) { return extent >= 1; });
  if (!positive || std::ssize(shape) > Shape::max_rank)
    throw UserError(fmt::format("the shape {} cannot be; give at most {} extents of 1 or more",
                                fmt::join(shape, "x"), Shape::max_rank));
  const auto elements = static_cast<size_t>(Shape(std::span(std::as_const(shape))).size());
  if (memory_->size() != 2 * elements) memory_ = std::make_shared<std::vector<float>>(2 * elements);
  shape_ = std::move(shape);
}

UserDefined::UserDefined(UserDefinedOptions options, std::shared_ptr<UserLayer> code,
                         std::vector<bool> in_place)
    : LayerOf(std::move(options)), code_(std::move(code)), in_place_(std::move(in_place)) {}

std::vector<Shape> UserDefined::output_shapes(std::span<const Shape> inputs, int outputs) const {
  UserTensors& bottoms = code_->bottoms;
  UserTensors& tops = code_->tops;
  while (bottoms.size() < inputs.size()) bottoms.push_back(std::make_shared<UserTensor>());
  for (auto top = tops.size(); top < static_cast<size_t>(outputs); ++top)
    tops.push_back(in_place_.at(top) ? bottoms.at(top) : std::make_shared<UserTensor>());
  return reshape(inputs);
}

std::vector<Shape> UserDefined::reshape(std::span<const Shape> inputs) const {
  const size_t outputs = code_->tops.size();
  for (size_t i = 0; i < inputs.size(); ++i) code_->bottoms.at(i)->reshape(extents_of(inputs[i]));
  if (!code_->is_set_up_) code_->set_up();
  code_->is_set_up_ = true;
  code_->reshape();
  check_count("tops after reshape()", code_->tops.size(), static_cast<int>(outputs),
              static_cast<int>(outputs));
  std::vector<Shape> shapes;
  for (const auto& top : code_->tops) shapes.push_back(shape_of(*top));
  return shapes;
}

std::vector<ParameterSpec> UserDefined::parameters(std::span<const Shape>) const {
  std::vector<ParameterSpec> specs;
  for (const auto& parameter : code_->parameters)
    specs.push_back({fmt::format("blob{}", specs.size()), shape_of(*parameter), Filler{}});
  return specs;
}

}  // namespace cortado
