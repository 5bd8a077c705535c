#pragma once

namespace cortado {

// The most that options take where nothing else limits them.
inline constexpr int most_iterations = 1'000'000'000, most_samples_of_batch = 1'000'000'000;
inline constexpr int most_threads = 4096;
// Seconds; for --stall-timeout and --peer-timeout.
inline constexpr int default_time_limit = 60, longest_time_limit = 1'000'000;

}  // namespace cortado
