#pragma once

#include <CLI/App.hpp>
#include <string>
#include <type_traits>

namespace cortado {

// An option that takes a number from `least` to `most`, both included; help shows them, and what `value`
// holds now where that is one of them. Any other text (letters, nan, inf, what no such type holds) is
// refused: "--batch: -1 is not a whole number from 1 to 1000000000". T: int, int64_t, uint64_t or double.
template <typename T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, std::type_identity_t<T> least,
                        std::type_identity_t<T> most, const std::string& description);

// The most that options take where nothing else limits them.
inline constexpr int most_iterations = 1'000'000'000, most_samples_of_batch = 1'000'000'000;
inline constexpr int most_ranks = 10'000, most_threads = 4096;
// Seconds, of --stall-timeout and --peer-timeout.
inline constexpr int default_time_limit = 60, longest_time_limit = 1'000'000;

}  // namespace cortado
