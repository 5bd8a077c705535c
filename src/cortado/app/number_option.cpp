#include "cortado/app/number_option.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <optional>

namespace cortado {
namespace {

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

}  // namespace

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

template CLI::Option* add_number(CLI::App&, const std::string&, int&, int, int, const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, int64_t&, int64_t, int64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, uint64_t&, uint64_t, uint64_t,
                                 const std::string&);
template CLI::Option* add_number(CLI::App&, const std::string&, double&, double, double, const std::string&);

}  // namespace cortado
