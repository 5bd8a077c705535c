#pragma once

#include <cstdint>
#include <string_view>

#include "cortado/base/error.h"

namespace cortado {

// Reads numbers and slices from the front of bytes that may be anything: throws UserError("it ends too
// early") where there are not enough of them.
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  std::string_view slice(uint64_t size) {
    if (size > rest_.size()) throw UserError("it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  // Of `bytes` bytes, at most 8, little-endian.
  uint64_t fixed(int bytes) {
    uint64_t value = 0;
    for (int shift = 0; const char byte : slice(static_cast<uint64_t>(bytes))) {
      value |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return value;
  }
  // Seven bits a byte, the lowest first; the top bit says that more follow.
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(slice(1)[0]);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    throw UserError("a number has too many bytes");
  }
  std::string_view prefixed() { return slice(varint()); }

 private:
  std::string_view rest_;
};

}  // namespace cortado
