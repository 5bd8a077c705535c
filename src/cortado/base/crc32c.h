#pragma once

#include <cstdint>
#include <string_view>

namespace cortado {

// CRC-32C of bytes (Castagnoli's polynomial 0x1EDC6F41, reflected; RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

}  // namespace cortado
