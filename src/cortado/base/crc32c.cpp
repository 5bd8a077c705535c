#include "cortado/base/crc32c.h"

#include <array>

namespace cortado {
namespace {

constexpr uint32_t reflected_polynomial = 0x82F63B78;

constexpr std::array<uint32_t, 256> remainders_of_bytes() {
  std::array<uint32_t, 256> remainders{};
  for (uint32_t byte = 0; byte < remainders.size(); ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder >> 1 ^ (remainder % 2 == 1 ? reflected_polynomial : 0);
    remainders[byte] = remainder;
  }
  return remainders;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> remainders = remainders_of_bytes();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = crc >> 8 ^ remainders[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace cortado
