#pragma once

#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "cortado/kernels/reference/chain.h"

#include "tests/kernels/check.h"

namespace cortado::check {

// Memory on a cache line boundary whose neighbourhood is watched.
class GuardedBytes {
 public:
  explicit GuardedBytes(int64_t count)
      : count_(count), bytes_(static_cast<std::byte*>(::operator new (count + guard, std::align_val_t{64}))) {
    std::memset(data(), 0xff, count);  // NaN in every floating-point type
    std::memset(data() + count, pattern, guard);
  }
  std::byte* data() const { return bytes_.get(); }
  void scramble() { std::memset(data(), 0xff, count_); }
  bool intact() const {
    for (int64_t i = 0; i < guard; ++i) {
      if (data()[count_ + i] != std::byte{pattern}) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t guard = 64;
  static constexpr unsigned char pattern = 0xa5;
  struct Delete {
    void operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{64}); }
  };
  int64_t count_;
  std::unique_ptr<std::byte, Delete> bytes_;
};

// A guarded array, NaN throughout at first.
template <typename T>
class Buffer {
 public:
  explicit Buffer(int64_t size) : size_(size), bytes_(size * static_cast<int64_t>(sizeof(T))) {}
  explicit Buffer(const std::vector<T>& values) : Buffer(static_cast<int64_t>(values.size())) { set(values); }
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  int64_t size() const { return size_; }
  void set(const std::vector<T>& values) { std::copy(values.begin(), values.end(), data()); }
  std::vector<T> values() const { return {data(), data() + size_}; }
  void scramble() { bytes_.scramble(); }
  bool intact() const { return bytes_.intact(); }

 private:
  int64_t size_;
  GuardedBytes bytes_;
};

// The values a task is checked with, canonical and channels last.
template <typename T>
struct TaskData {
  std::vector<std::vector<T>> inputs, output_gradients, parameters;
  TaskData(const Task& task, const CheckOptions& options);
};

extern template struct TaskData<float>;
extern template struct TaskData<double>;

// Values of input `input` with another seed: what perturbations write.
template <typename T>
std::vector<T> input_values(const Task& task, int input, const CheckOptions& options);

// All memory of one kernel's runs on a task, parameters in the canonical order.
template <typename T>
class TaskBuffers {
 public:
  TaskBuffers(const Task& task, const KernelOf<T>& kernel, const TaskData<T>& data);
  ArgumentsOf<T> arguments();  // of forward and backward

  std::vector<Buffer<T>> inputs, outputs, output_gradients, input_gradients, parameters, parameter_gradients;
  GuardedBytes saved, scratch;

 private:
  const Task& task_;
};

extern template class TaskBuffers<float>;
extern template class TaskBuffers<double>;

RandomStream check_stream(const CheckOptions& options, std::string_view what);

}  // namespace cortado::check
