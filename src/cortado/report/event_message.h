#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace cortado {

// How values are spread: counts[i] of them lie above limits[i - 1] and at or below limits[i].
struct Histogram {
  double least = 0, greatest = 0;
  double sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  // ascending
  std::vector<int64_t> counts;
};

// Returns the histogram of finite values, in buckets of equal width from the least value to the greatest;
// without buckets where there are no values.
Histogram histogram_of(std::span<const float> values);

// What TensorBoard shows at one step: for each tag a number, which it keeps as a float, or a histogram.
struct Event {
  struct Value {
    std::string tag;
    std::variant<double, Histogram> value;
  };
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::vector<Value> values;
};

// Bytes of TensorFlow's protobuf message Event (tensorflow/core/util/event.proto; its Summary is
// tensorflow/core/framework/summary.proto).
std::string event_message(const Event& event);
// The event that begins a file.
std::string version_message(double wall_time);
// The event by which TensorBoard forgets what earlier files of the folder say of `step` and later ones.
std::string restart_message(double wall_time, int64_t step);

}  // namespace cortado
