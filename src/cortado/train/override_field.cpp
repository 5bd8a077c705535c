#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/train/solver_options.h"

namespace cortado {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

template <typename Number>
Number parse_number(const FieldDescriptor& field, const std::string& text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw UserError(fmt::format("set {}: '{}' is no {}", field.name(), text, field.cpp_type_name()));
  }
  if (!std::isfinite(value))
    throw UserError(fmt::format("set {}: '{}' is no finite number", field.name(), text));
  return value;
}

bool parse_bool(const FieldDescriptor& field, const std::string& text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  throw UserError(fmt::format("set {}: '{}' is neither true nor false", field.name(), text));
}

const google::protobuf::EnumValueDescriptor& parse_enum(const FieldDescriptor& field,
                                                        const std::string& text) {
  const auto& type = *field.enum_type();
  if (const auto* value = type.FindValueByName(text)) return *value;
  std::vector<std::string_view> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  throw UserError(fmt::format("set {}: '{}' is unknown (known: {})", field.name(), text, joined(names)));
}

// Sets a single field or adds to a repeated one.
void put_value(caffe::SolverParameter& solver, const FieldDescriptor& field, const std::string& text) {
  const Reflection& access = *solver.GetReflection();
  auto put = [&](auto set, auto add, auto value) {
    if (field.is_repeated()) {
      (access.*add)(&solver, &field, value);
    } else {
      (access.*set)(&solver, &field, value);
    }
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32, &Reflection::AddInt32, parse_number<int32_t>(field, text));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&Reflection::SetInt64, &Reflection::AddInt64, parse_number<int64_t>(field, text));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat, &Reflection::AddFloat, parse_number<float>(field, text));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&Reflection::SetBool, &Reflection::AddBool, parse_bool(field, text));
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&Reflection::SetEnum, &Reflection::AddEnum, &parse_enum(field, text));
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) return access.AddString(&solver, &field, text);
      return access.SetString(&solver, &field, text);
    default:
      throw UserError(fmt::format("set {}: the field holds fields of its own; change it in the solver file",
                                  field.name()));
  }
}

const FieldDescriptor& solver_field(const std::string& key) {
  const auto& type = *caffe::SolverParameter::descriptor();
  if (const FieldDescriptor* field = type.FindFieldByName(key)) return *field;
  std::vector<std::string_view> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  throw UserError(fmt::format("set {}: solver files have no such field{}", key, did_you_mean(key, names)));
}

}  // namespace

void override_field(caffe::SolverParameter& solver, const std::string& assignment) {
  size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    throw UserError(fmt::format("set {}: give key=value, for example base_lr=0.01", assignment));
  }
  const FieldDescriptor& field = solver_field(assignment.substr(0, equals));
  std::string value = assignment.substr(equals + 1);
  solver.GetReflection()->ClearField(&solver, &field);
  if (!field.is_repeated()) return put_value(solver, field, value);
  for (size_t begin = 0; begin <= value.size() && !value.empty();) {
    size_t comma = std::min(value.find(',', begin), value.size());
    put_value(solver, field, value.substr(begin, comma - begin));
    begin = comma + 1;
  }
}

}  // namespace cortado
