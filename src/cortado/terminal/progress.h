#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cortado {

// Returns a bar of `done` of `total` with texts beside it, at most `columns` wide. Texts of the highest
// `importance` are left out first: 0 stays longest.
struct ProgressPart {
  std::string text;
  int importance = 0;
};
std::string progress_text(int64_t done, int64_t total, const std::vector<ProgressPart>& parts, int columns);

// Rewrites a line of the standard error with "3 of 4 (75%)" if that is a terminal; prints nothing elsewhere.
void show_count(int64_t done, int64_t total);

// Returns "1:05", "2:00:00".
std::string clock_text(double seconds);

}  // namespace cortado
