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

}  // namespace cortado
