#pragma once

#include <compare>
#include <cstdint>

namespace cortado {

// Quantities that carry their unit in their type.
struct Bytes {
  int64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
  Bytes operator+(Bytes other) const { return {count + other.count}; }
  Bytes& operator+=(Bytes other) {
    count += other.count;
    return *this;
  }
};

// Floating-point operations; a multiply-add counts two.
struct Flops {
  double count = 0;
  auto operator<=>(const Flops&) const = default;
  Flops operator+(Flops other) const { return {count + other.count}; }
  Flops& operator+=(Flops other) {
    count += other.count;
    return *this;
  }
};

struct Seconds {
  double count = 0;
  auto operator<=>(const Seconds&) const = default;
  Seconds operator+(Seconds other) const { return {count + other.count}; }
  Seconds operator-(Seconds other) const { return {count - other.count}; }
  Seconds& operator+=(Seconds other) {
    count += other.count;
    return *this;
  }
};

// Floating-point operations per second; a multiply-add counts two.
struct FlopRate {
  double per_second = 0;
  auto operator<=>(const FlopRate&) const = default;
};

struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};

inline Seconds operator/(Flops work, FlopRate rate) { return {work.count / rate.per_second}; }
inline Seconds operator/(Bytes data, Bandwidth bandwidth) {
  return {static_cast<double>(data.count) / bandwidth.bytes_per_second};
}

}  // namespace cortado
