#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cortado {

// XXH64 (Yann Collet's xxHash of 64 bits, seed 0) of bytes that come in parts: the same on every machine, and
// fast enough for every byte of a snapshot. No defence against forgers.
class Digest {
 public:
  void add(std::string_view bytes);
  uint64_t value() const;

 private:
  static constexpr size_t stripe = 32;
  void mix(const char* bytes);  // a stripe

  std::array<uint64_t, 4> lanes_ = {0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579};
  std::array<char, stripe> rest_{};  // of the last stripe: size_ % stripe bytes
  uint64_t size_ = 0;
};

uint64_t digest(std::string_view bytes);

}  // namespace cortado
