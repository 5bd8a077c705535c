#pragma once

#include <cstddef>

#include "cortado/base/units.h"

namespace cortado {

// A large zeroed block of memory, aligned to 2 MiB. The system is asked for huge pages, and touches them
// lazily. Throws UserError when the system does not have that much.
class Memory {
 public:
  Memory() = default;
  explicit Memory(Bytes size);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  float* floats(int64_t byte_offset = 0) const { return reinterpret_cast<float*>(data_ + byte_offset); }
  Bytes size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace cortado
