#pragma once

#include "cortado/base/fields.h"
#include "cortado/base/shape.h"

namespace cortado::testing {

// Another value of the type.
inline void change(bool& value) { value = !value; }
inline void change(int& value) { value += 1; }
inline void change(int64_t& value) { value += 2; }
inline void change(double& value) { value = value > 0 ? value / 2 : value + 3; }
inline void change(std::string& value) { value += "x"; }
inline void change(Shape& value) { value.append(3); }
template <typename Value>
requires std::is_enum_v<Value>
void change(Value& value) { value = static_cast<Value>(value == Value{} ? 1 : 0); }
template <ListsFields Struct>
void change(Struct& value);
template <typename Value>
void change(std::optional<Value>& value) {
  if (value)
    change(*value);
  else
    value.emplace();
}
template <typename Value>
void change(std::vector<Value>& values) {
  values.emplace_back(Value{});
}
// Its first field.
template <ListsFields Struct>
void change(Struct& value) {
  change(value.*std::get<0>(Struct::fields).member);
}

// Calls see(name, in_key, changed) for each field: `options` with another value of that one field.
template <ListsFields Struct, typename See>
void with_each_field_changed(const Struct& options, See&& see) {
  for_each_field<Struct>([&](const auto& field) {
    Struct changed = options;
    change(changed.*field.member);
    see(field.name, field.in_key, changed);
  });
}

}  // namespace cortado::testing
