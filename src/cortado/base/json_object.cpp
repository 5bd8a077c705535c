#include "cortado/base/json_object.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"

namespace cortado {
namespace {

// Units below 1 divide: 1e6 is a whole number, 1e-6 is not one of binary digits.
double from_unit(long double value, JsonUnit unit) {
  return static_cast<double>(unit.size < 1 ? value / std::round(1 / unit.size) : value * unit.size);
}

long double to_unit(double value, JsonUnit unit) {
  return unit.size < 1 ? value * std::round(1 / unit.size) : value / unit.size;
}

}  // namespace

Json parse_json(const std::string& text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}: is not JSON: {}", where, error.what()));
  }
}

void check_format(const Json& json, const std::string& where, std::string_view kind, std::string_view format,
                  int version) {
  const Json none;
  auto value_of = [&](const char* key) -> const Json& { return json.contains(key) ? json[key] : none; };
  if (!json.is_object() || value_of("format") != format)
    throw UserError(fmt::format("{}: is not a {} file: \"format\" must be \"{}\"", where, kind, format));
  if (value_of("version") != version)
    throw UserError(fmt::format("{}: version: {} is not supported, this program reads {}", where,
                                shown(value_of("version")), version));
}

std::string shown(const Json& value) {
  constexpr size_t longest = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  std::string text = value.dump(-1, ' ', true);
  return text.size() > longest ? text.substr(0, longest) + "..." : text;
}

std::string number_text(double value, JsonUnit unit) {
  const long double wanted = to_unit(value, unit);
  auto brings_back = [&](const std::string& text) {
    long double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    return from_unit(read, unit) == value;
  };
  constexpr int most_digits = std::numeric_limits<long double>::max_digits10;
  int digits = 1;
  while (digits < most_digits && !brings_back(fmt::format("{:.{}e}", wanted, digits - 1))) ++digits;
  // 15700 rather than 1.57e+04.
  constexpr long double least = 1e-4L, most = 1e9L;
  if (wanted >= least && wanted < most) {
    const int decimals = std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(wanted))));
    std::string text = fmt::format("{:.{}f}", wanted, decimals);
    if (text.ends_with('.')) text.pop_back();  // fmt's 0.99999999999999995 to one decimal is "1."
    if (brings_back(text)) return text;
  }
  return fmt::format("{:.{}g}", wanted, digits);
}

JsonObject::JsonObject(const Json& value, std::string file, std::string path,
                       std::span<const std::string_view> known)
    : value_(value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) {
    throw UserError(fmt::format("{}: {}: {} is not an object; its keys are {}", file_, path_, shown(value),
                                joined(known)));
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    const std::string place = path_.empty() ? "" : path_ + ": ";
    throw UserError(fmt::format("{}: {}there is no key {}{} (known: {})", file_, place, shown(Json(key)),
                                did_you_mean(std::string_view(key).substr(0, 60), known), joined(known)));
  }
}

std::string JsonObject::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void JsonObject::refuse(std::string_view key, const std::string& what) const {
  throw UserError(fmt::format("{}: {}: {}", file_, path_of(key), what));
}

const Json& JsonObject::get(std::string_view key, std::string_view meaning) const {
  const auto found = value_.find(key);
  if (found == value_.end()) refuse(key, fmt::format("is missing; give {}", meaning));
  return *found;
}

double JsonObject::number(const Json& value, std::string_view key, JsonUnit unit,
                          std::string_view meaning) const {
  if (!value.is_number()) refuse(key, fmt::format("{} is not a number; give {}", shown(value), meaning));
  const double number = from_unit(value.get<long double>(), unit);
  if (!std::isfinite(number)) refuse(key, fmt::format("{} is too large; give {}", shown(value), meaning));
  if (number < 0) refuse(key, fmt::format("{} is negative; give {}", shown(value), meaning));
  return number;
}

double JsonObject::not_negative(std::string_view key, JsonUnit unit, std::string_view meaning) const {
  return number(get(key, meaning), key, unit, meaning);
}

double JsonObject::positive(std::string_view key, JsonUnit unit, std::string_view meaning) const {
  const double number = not_negative(key, unit, meaning);
  if (number == 0) refuse(key, fmt::format("{} is not above 0; give {}", shown(get(key, meaning)), meaning));
  return number;
}

int JsonObject::whole(std::string_view key, int least, int most, std::string_view meaning) const {
  return whole(get(key, meaning), key, least, most, meaning);
}

int JsonObject::whole(const Json& value, std::string_view key, int least, int most,
                      std::string_view meaning) const {
  const bool good = value.is_number_integer() && value <= Json(most) && value >= Json(least);
  if (!good) {
    refuse(key, fmt::format("{} is not a whole number from {} to {}; give {}", shown(value), least, most,
                            meaning));
  }
  return value.get<int>();
}

bool JsonObject::truth(std::string_view key, std::string_view meaning) const {
  const Json& value = get(key, meaning);
  if (!value.is_boolean())
    refuse(key, fmt::format("{} is not true or false; give {}", shown(value), meaning));
  return value.get<bool>();
}

std::string JsonObject::text(std::string_view key, std::string_view meaning) const {
  const Json& value = get(key, meaning);
  if (!value.is_string()) refuse(key, fmt::format("{} is not a text; give {}", shown(value), meaning));
  return value.get<std::string>();
}

const Json& JsonObject::list(std::string_view key, std::string_view meaning) const {
  const Json& value = get(key, meaning);
  if (!value.is_array()) refuse(key, fmt::format("{} is not a list; give {}", shown(value), meaning));
  return value;
}

JsonObject JsonObject::object(std::string_view key, std::span<const std::string_view> known,
                              std::string_view meaning) const {
  const Json& value = get(key, meaning);
  if (!value.is_object()) refuse(key, fmt::format("{} is not an object; give {}", shown(value), meaning));
  return {value, file_, path_of(key), known};
}

}  // namespace cortado
