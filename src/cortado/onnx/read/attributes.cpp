#include "cortado/onnx/read/attributes.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::onnx {

const AttributeProto* Attributes::find(const std::string& name) const {
  read_.insert(name);
  for (const AttributeProto& attribute : node_.attribute())
    if (attribute.name() == name) return &attribute;
  return nullptr;
}

const AttributeProto* Attributes::find(const std::string& name, AttributeProto::AttributeType type) const {
  const AttributeProto* found = find(name);
  if (found && found->type() != type)
    throw UserError(fmt::format("attribute {} is of type {}, not {}; the file is broken", name,
                                AttributeProto::AttributeType_Name(found->type()),
                                AttributeProto::AttributeType_Name(type)));
  return found;
}

int64_t Attributes::integer(const std::string& name, int64_t otherwise) const {
  const AttributeProto* found = find(name, AttributeProto::INT);
  return found ? found->i() : otherwise;
}

double Attributes::number(const std::string& name, double otherwise) const {
  const AttributeProto* found = find(name, AttributeProto::FLOAT);
  return found ? found->f() : otherwise;
}

std::string Attributes::text(const std::string& name, const std::string& otherwise) const {
  const AttributeProto* found = find(name, AttributeProto::STRING);
  return found ? found->s() : otherwise;
}

std::optional<std::vector<int64_t>> Attributes::integers(const std::string& name) const {
  const AttributeProto* found = find(name, AttributeProto::INTS);
  if (!found) return std::nullopt;
  return std::vector<int64_t>(found->ints().begin(), found->ints().end());
}

std::optional<std::vector<float>> Attributes::numbers(const std::string& name) const {
  const AttributeProto* found = find(name, AttributeProto::FLOATS);
  if (!found) return std::nullopt;
  return std::vector<float>(found->floats().begin(), found->floats().end());
}

const TensorProto* Attributes::tensor(const std::string& name) const {
  const AttributeProto* found = find(name, AttributeProto::TENSOR);
  return found ? &found->t() : nullptr;
}

void Attributes::check_all_read() const {
  for (const AttributeProto& attribute : node_.attribute())
    if (!read_.contains(attribute.name()))
      throw UserError(
          fmt::format("attribute '{}' is not one of this operator in opset 13 to 18; export the "
                      "model without it",
                      attribute.name()));
}

}  // namespace cortado::onnx
