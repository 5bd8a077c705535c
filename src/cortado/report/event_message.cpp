#include "cortado/report/event_message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace cortado {
namespace {

constexpr int most_buckets = 64;

// A protobuf message that grows field by field (protobuf's "Encoding").
class Message {
 public:
  const std::string& bytes() const { return bytes_; }

  void integer(int field, int64_t value) {
    key(field, WireType::varint);
    varint(static_cast<uint64_t>(value));
  }
  void number(int field, double value) {
    key(field, WireType::eight_bytes);
    raw(value);
  }
  void number(int field, float value) {
    key(field, WireType::four_bytes);
    raw(value);
  }
  void text(int field, std::string_view value) {
    key(field, WireType::counted);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { text(field, value.bytes()); }
  template <typename T>
  void numbers(int field, const std::vector<T>& values) {
    Message packed;
    for (const T value : values) packed.raw(static_cast<double>(value));
    message(field, packed);
  }

 private:
  enum class WireType { varint = 0, eight_bytes = 1, counted = 2, four_bytes = 5 };

  void key(int field, WireType type) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
  }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  template <typename T>
  void raw(T value) {
    static_assert(std::endian::native == std::endian::little, "protobuf's numbers are little-endian");
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    bytes_.append(bytes, sizeof value);
  }

  std::string bytes_;
};

// The numbers of the fields in TensorFlow's messages.
namespace event_field {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace session_field {
constexpr int status = 1, status_start = 1;
}
namespace summary_field {
constexpr int value = 1, tag = 1, simple_value = 2, histogram = 5;
}
namespace histogram_field {
constexpr int least = 1, greatest = 2, count = 3, sum = 4, sum_of_squares = 5, limits = 6, counts = 7;
}

Message message_of(const Histogram& histogram) {
  int64_t count = 0;
  for (const int64_t in_bucket : histogram.counts) count += in_bucket;
  Message message;
  message.number(histogram_field::least, histogram.least);
  message.number(histogram_field::greatest, histogram.greatest);
  message.number(histogram_field::count, static_cast<double>(count));
  message.number(histogram_field::sum, histogram.sum);
  message.number(histogram_field::sum_of_squares, histogram.sum_of_squares);
  message.numbers(histogram_field::limits, histogram.limits);
  message.numbers(histogram_field::counts, histogram.counts);
  return message;
}

Message message_of(const Event::Value& value) {
  Message message;
  message.text(summary_field::tag, value.tag);
  if (const double* number = std::get_if<double>(&value.value))
    message.number(summary_field::simple_value, static_cast<float>(*number));
  else
    message.message(summary_field::histogram, message_of(std::get<Histogram>(value.value)));
  return message;
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram histogram;
  if (values.empty()) return histogram;
  const auto [least, greatest] = std::ranges::minmax(values);
  histogram.least = least;
  histogram.greatest = greatest;
  const int buckets = least == greatest ? 1 : most_buckets;
  const double width = (histogram.greatest - histogram.least) / buckets;
  for (int bucket = 1; bucket < buckets; ++bucket)
    histogram.limits.push_back(histogram.least + bucket * width);
  histogram.limits.push_back(histogram.greatest);
  histogram.counts.resize(histogram.limits.size());
  for (const double value : values) {
    histogram.sum += value;
    histogram.sum_of_squares += value * value;
    const auto bucket = std::min(std::ranges::lower_bound(histogram.limits, value),
                                 histogram.limits.end() - 1);  // of what is not a number
    ++histogram.counts[static_cast<size_t>(bucket - histogram.limits.begin())];
  }
  return histogram;
}

std::string event_message(const Event& event) {
  Message summary;
  for (const Event::Value& value : event.values) summary.message(summary_field::value, message_of(value));
  Message message;
  message.number(event_field::wall_time, event.wall_time);
  message.integer(event_field::step, event.step);
  message.message(event_field::summary, summary);
  return message.bytes();
}

std::string version_message(double wall_time) {
  Message message;
  message.number(event_field::wall_time, wall_time);
  message.text(event_field::file_version, "brain.Event:2");
  return message.bytes();
}

std::string restart_message(double wall_time, int64_t step) {
  Message session;
  session.integer(session_field::status, session_field::status_start);
  Message message;
  message.number(event_field::wall_time, wall_time);
  message.integer(event_field::step, step);
  message.message(event_field::session_log, session);
  return message.bytes();
}

}  // namespace cortado
