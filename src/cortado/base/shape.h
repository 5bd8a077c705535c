#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace cortado {

// Extents of a tensor, spoken in the order N, C, (D,) H, W whatever its order in memory.
// At most `max_rank` axes (Caffe's own limit is 32, no known net uses more than 6).
class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents) : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const int64_t> extents);  // throws UserError on a negative extent or rank > 8

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[axis]; }
  void set(int axis, int64_t extent) { extents_[axis] = extent; }
  void append(int64_t extent);
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }

  int64_t size() const { return count(0, rank_); }  // product of all extents; 1 for rank 0
  int64_t count(int begin, int end) const;          // product of extents[begin, end)
  int64_t count(int begin) const { return count(begin, rank_); }
  int64_t spatial_size() const { return rank_ > 2 ? count(2) : 1; }  // D*H*W

  // Caffe's axis rule: negative counts from the end. Throws UserError when outside [-rank, rank).
  int canonical_axis(int axis) const;

  std::string text() const;  // "64x3x227x227"; "scalar" for rank 0
  bool operator==(const Shape&) const = default;

 private:
  int rank_ = 0;
  std::array<int64_t, max_rank> extents_{};
};

// Element strides of a tensor in Cortado's one memory order, channels last: axis 0, axes 2.., axis 1.
// (NHWC, NWC, NDHWC; for rank 2 and less this is plain row-major.)
struct Strides {
  std::array<int64_t, Shape::max_rank> of{};
  int64_t operator[](int axis) const { return of[axis]; }
};
Strides channels_last_strides(const Shape& shape);
// The axis that comes at `place` in that order of a tensor of that rank, slowest first.
int memory_axis(int rank, int place);
Strides row_major_strides(const Shape& shape);

}  // namespace cortado
