#pragma once

#include <vector>

#include "cortado/base/bf16.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {

using Numbers = std::vector<double>;

// What a number is once it lies in memory as that type.
inline double rounded(double value, ElementType type) {
  const float nearest = static_cast<float>(value);
  return type == ElementType::bf16 ? to_float(to_bf16(nearest)) : nearest;
}

// A guarded array of f32 or bf16, NaN throughout at first.
class TypedBuffer {
 public:
  explicit TypedBuffer(int64_t size, ElementType type = ElementType::f32)
      : size_(size), type_(type), bytes_(size * size_of(type)) {}
  TypedBuffer(const Numbers& values, ElementType type) : TypedBuffer(std::ssize(values), type) {
    set(values);
  }
  ElementType type() const { return type_; }
  int64_t size() const { return size_; }
  // Null where it is empty.
  float* data() const { return size_ > 0 ? reinterpret_cast<float*>(bytes_.data()) : nullptr; }
  void scramble() { bytes_.scramble(); }
  bool intact() const { return bytes_.intact(); }
  void set(const Numbers& values) {
    for (int64_t i = 0; i < size_; ++i) {
      const float value = static_cast<float>(values[i]);
      if (type_ == ElementType::bf16) {
        elements<bf16>(data())[i] = to_bf16(value);
      } else {
        data()[i] = value;
      }
    }
  }
  Numbers values() const {
    Numbers values(size_);
    for (int64_t i = 0; i < size_; ++i)
      values[i] = type_ == ElementType::bf16 ? to_float(elements<bf16>(data())[i]) : data()[i];
    return values;
  }

 private:
  int64_t size_;
  ElementType type_;
  GuardedBytes bytes_;
};

}  // namespace cortado::check
