#pragma once

#include <cstdint>

#include "cortado/kernels/everywhere.h"

namespace cortado::gpu {

// Divides by a number that is known before a kernel starts: by a multiplication, where the dividend has 31
// bits. T. Granlund, P. Montgomery, "Division by Invariant Integers using Multiplication", 1994, section 4.
class Divisor {
 public:
  Divisor() : Divisor(1) {}
  explicit Divisor(int64_t value) : value_(value) {  // positive
    if (value == 1 || value >> 31 != 0) return;
    int bits = 0;
    while ((int64_t{1} << bits) < value) ++bits;
    shift_ = bits - 1;
    factor_ = static_cast<uint32_t>(((uint64_t{1} << (31 + bits)) + static_cast<uint64_t>(value) - 1) /
                                    static_cast<uint64_t>(value));
  }
  CORTADO_EVERYWHERE int64_t value() const { return value_; }
  // The dividend is not negative.
  CORTADO_EVERYWHERE int64_t quotient(int64_t dividend) const {
    if (factor_ == 0 || (dividend >> 31) != 0) return value_ == 1 ? dividend : dividend / value_;
    return static_cast<int64_t>(static_cast<uint64_t>(dividend) * factor_ >> 32 >> shift_);
  }
  // Divides `number`; gives the remainder.
  CORTADO_EVERYWHERE int64_t split(int64_t& number) const {
    const int64_t whole = quotient(number), rest = number - whole * value_;
    number = whole;
    return rest;
  }

 private:
  int64_t value_;
  uint32_t factor_ = 0;  // 0: none
  int shift_ = 0;
};

}  // namespace cortado::gpu
