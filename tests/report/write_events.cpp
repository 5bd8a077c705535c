// write_events FOLDER COUNT SEED: writes random events into a file of the folder, and prints each as a line
// of JSON.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "cortado/report/event_file.h"

namespace cortado {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  Event event() {
    Event event{.wall_time = number(), .step = integer()};
    for (uint64_t left = below(6); left > 0; --left)
      event.values.push_back(below(2) == 0 ? Event::Value{tag(), number()}
                                           : Event::Value{tag(), histogram()});
    return event;
  }
  // Of all lengths as numbers: a varint has from 1 to 10 bytes.
  int64_t integer() { return static_cast<int64_t>(random_() >> below(64)); }

 private:
  uint64_t below(uint64_t end) { return random_() % end; }
  double number() {
    return std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random_),
                      static_cast<int>(below(160)) - 80);
  }
  std::string tag() {
    std::string tag;
    for (uint64_t left = below(8) == 0 ? below(400) : below(20); left > 0; --left)
      tag += below(10) == 0 ? "\u00e9\u6f22" : std::string(1, static_cast<char>(' ' + below(95)));
    return tag;
  }
  Histogram histogram() {
    Histogram histogram{.least = number(), .greatest = number(), .sum = number(), .sum_of_squares = number()};
    for (uint64_t left = below(100); left > 0; --left) {
      histogram.limits.push_back(number());
      histogram.counts.push_back(static_cast<int64_t>(below(1 << 20)));
    }
    return histogram;
  }

  std::mt19937_64 random_;
};

nlohmann::json json_of(const Event& event) {
  nlohmann::json values = nlohmann::json::array();
  for (const auto& [tag, value] : event.values) {
    nlohmann::json json{{"tag", tag}};
    if (const double* number = std::get_if<double>(&value)) {
      json["number"] = *number;
    } else {
      const auto& histogram = std::get<Histogram>(value);
      json["histogram"] = {histogram.least, histogram.greatest, histogram.sum, histogram.sum_of_squares};
      json["limits"] = histogram.limits;
      json["counts"] = histogram.counts;
    }
    values.push_back(json);
  }
  return {{"wall_time", event.wall_time}, {"step", event.step}, {"values", values}};
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  using namespace cortado;
  if (count != 4) return 2;
  EventFile file("write_events", words[1]);
  Draw draw(std::strtoull(words[3], nullptr, 10));
  for (int64_t i = 0; i < std::atoll(words[2]); ++i) {
    if (i % 1000 == 500) {
      const int64_t step = draw.integer();
      file.restart(step);
      fmt::print("{}\n", nlohmann::json{{"restart", step}}.dump());
      continue;
    }
    const Event event = draw.event();
    file.write(event);
    fmt::print("{}\n", json_of(event).dump());
  }
}
