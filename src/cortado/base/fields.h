#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace cortado {

// A struct of options lists its members once, after the last of them:
//
//   struct TileOptions {
//     int axis = 1;
//     int tiles = 1;
//     static constexpr auto fields =
//         std::tuple{field("axis", &TileOptions::axis), field("tiles", &TileOptions::tiles)};
//   };
//
// Equality and text follow from the list. A list that misses a member does not compile.
template <typename Struct, typename Value>
struct Field {
  std::string_view name;
  Value Struct::*member;
  bool in_key;  // false: what it says changes neither what a task computes nor its time (a filler)
};

template <typename Struct, typename Value>
constexpr Field<Struct, Value> field(std::string_view name, Value Struct::*member) {
  return {name, member, true};
}
template <typename Struct, typename Value>
constexpr Field<Struct, Value> unkeyed_field(std::string_view name, Value Struct::*member) {
  return {name, member, false};
}

template <typename Struct>
concept ListsFields = requires {
  Struct::fields;
};

// Calls visit(field) for each field of the struct, in order.
template <ListsFields Struct, typename Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Struct::fields);
}

namespace detail {

// Initializes a member of any type, in expressions that are not evaluated.
struct Anything {
  template <typename Value>
  operator Value() const;
};

}  // namespace detail

// The number of members of an aggregate.
template <typename Struct, typename... Values>
constexpr size_t member_count() {
  if constexpr (requires { Struct{Values{}..., detail::Anything{}}; })
    return member_count<Struct, Values..., detail::Anything>();
  else
    return sizeof...(Values);
}

namespace detail {

template <typename Struct, typename Value, typename Other>
constexpr bool same_field(const Field<Struct, Value>& a, const Field<Struct, Other>& b) {
  if (a.name == b.name) return true;
  if constexpr (std::same_as<Value, Other>) return a.member == b.member;
  return false;
}

// Whether no two fields have one name or one member.
template <ListsFields Struct>
constexpr bool fields_differ() {
  size_t equal_pairs = 0, count = 0;
  for_each_field<Struct>([&](const auto& one) {
    ++count;
    for_each_field<Struct>([&](const auto& other) { equal_pairs += same_field(one, other) ? 1 : 0; });
  });
  return equal_pairs == count;  // each with itself
}

}  // namespace detail

// Whether the list has every member of the struct, once and by a name of its own.
template <ListsFields Struct>
constexpr bool lists_all_members() {
  return std::tuple_size_v<decltype(Struct::fields)> == member_count<Struct>() &&
         detail::fields_differ<Struct>();
}

template <ListsFields Struct>
constexpr bool operator==(const Struct& a, const Struct& b) {
  static_assert(lists_all_members<Struct>());
  bool equal = true;
  for_each_field<Struct>([&](const auto& field) { equal = equal && a.*field.member == b.*field.member; });
  return equal;
}

// `all`: every field. `key`: those that a task's computing and time depend on.
enum class Words { all, key };

// A value as a word that no other value of its type has: 3, true, 0.1, "conv", [3,3], - for an
// absent one, an enumerator's number, (axis=1 num_axes=1) for a struct.
std::string word_of(bool value, Words which);
std::string word_of(int64_t value, Words which);
std::string word_of(double value, Words which);
std::string word_of(const std::string& value, Words which);
template <typename Value>
requires std::is_enum_v<Value> std::string word_of(Value value, Words which) {
  return word_of(static_cast<int64_t>(value), which);
}
inline std::string word_of(int value, Words which) { return word_of(int64_t{value}, which); }
template <ListsFields Struct>
std::string word_of(const Struct& value, Words which);
template <typename Value>
requires requires(const Value& value) {
  { value.text() } -> std::same_as<std::string>;
}
std::string word_of(const Value& value, Words) { return "(" + value.text() + ")"; }
template <typename Value>
std::string word_of(const std::optional<Value>& value, Words which) {
  return value ? word_of(*value, which) : "-";
}
template <typename Value>
std::string word_of(const std::vector<Value>& values, Words which) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ",") + word_of(value, which);
  return "[" + text + "]";
}

// The fields as "name=value" words with spaces between them.
template <ListsFields Struct>
std::string words_of(const Struct& options, Words which = Words::all) {
  static_assert(lists_all_members<Struct>());
  std::string text;
  for_each_field<Struct>([&](const auto& field) {
    if (which == Words::key && !field.in_key) return;
    if (!text.empty()) text += ' ';
    text.append(field.name) += '=';
    text += word_of(options.*field.member, which);
  });
  return text;
}
// Words of one of several structs, whose name is said elsewhere.
template <typename... Structs>
std::string words_of(const std::variant<Structs...>& options, Words which = Words::all) {
  return std::visit([&](const auto& one) { return words_of(one, which); }, options);
}

template <ListsFields Struct>
std::string word_of(const Struct& value, Words which) {
  return "(" + words_of(value, which) + ")";
}

}  // namespace cortado
