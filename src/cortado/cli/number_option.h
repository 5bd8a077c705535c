#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cortado {

// Adds an option that takes a number from `least` to `most`, both included. Help shows these limits, and the
// present `value` as the default if it lies within them. Any other text (letters, nan, inf, what no such type
// holds) is refused: "--batch: -1 is not a whole number from 1 to 1000000000". T: int, int64_t, uint64_t or
// double.
template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, std::type_identity_t<T> least,
                        std::type_identity_t<T> most, const std::string& description);

// Returns the numbers of "104,117,123", none of "". A number has no "+". Throws UserError that names the
// option and what is wanted. Number: int or double.
template <typename Number>
std::vector<Number> numbers_of(const std::string& text, const char* option, const char* wanted);

// Returns the number if the whole text is one: "3", "+3". T: as of add_number().
template <typename T>
std::optional<T> number_of(std::string_view text);

// Refuses 0.
CLI::Validator other_than_zero();

}  // namespace cortado
