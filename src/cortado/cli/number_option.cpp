#include "cortado/cli/number_option.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/text.h"

namespace cortado {

template <typename T>
std::optional<T> number_of(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value)) return std::nullopt;
  return value;
}

template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, std::type_identity_t<T> least,
                        std::type_identity_t<T> most, const std::string& description) {
  const std::string range = fmt::format("{} to {}", least, most);
  const CLI::callback_t read = [&value, name, least, most, range](const CLI::results_t& words) {
    const std::optional<T> number = number_of<T>(words.front());
    if (!number || *number < least || *number > most)
      throw CLI::ValidationError(name, fmt::format("{} is not a {}number from {}", words.front(),
                                                   std::is_integral_v<T> ? "whole " : "", range));
    value = *number;
    return true;
  };
  CLI::Option* option = command.add_option(name, read, description)->type_name("NUMBER (" + range + ")");
  if (value >= least && value <= most) option->default_str(fmt::format("{}", value));
  return option;
}

template <typename Number>
std::vector<Number> numbers_of(const std::string& text, const char* option, const char* wanted) {
  std::vector<Number> numbers;
  for (const std::string& part : split_list(text)) {
    const std::optional<Number> number = part.starts_with('+') ? std::nullopt : number_of<Number>(part);
    if (!number)
      throw UserError(fmt::format("{} {}: '{}' is not a number; give {}", option, text, part, wanted));
    numbers.push_back(*number);
  }
  return numbers;
}

CLI::Validator other_than_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        return number_of<double>(text) == 0.0 ? fmt::format("{} is not a number other than 0", text)
                                              : std::string();
      },
      "");
}

template std::optional<int> number_of(std::string_view);
template std::optional<int64_t> number_of(std::string_view);
template std::vector<int> numbers_of(const std::string&, const char*, const char*);
template std::vector<double> numbers_of(const std::string&, const char*, const char*);
template CLI::Option* add_number(CLI::App&, const std::string&, int&, int, int, const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, int64_t&, int64_t, int64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, uint64_t&, uint64_t, uint64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, double&, double, double, const std::string&);

}  // namespace cortado
