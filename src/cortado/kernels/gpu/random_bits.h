#pragma once

#include "cortado/base/random.h"
#include "cortado/kernels/gpu/grid.h"

namespace cortado::gpu {

// RandomStream::bits() of draw 0, by the same function on any device (base/random.h).
CORTADO_EVERYWHERE inline uint32_t random_bits(const RandomStream& stream, uint64_t index) {
  uint32_t counter[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                         static_cast<uint32_t>(stream.iteration), 0};
  uint32_t key[2] = {
      static_cast<uint32_t>(stream.seed) ^ stream.owner,
      static_cast<uint32_t>(stream.seed >> 32) ^ static_cast<uint32_t>(stream.iteration >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0], product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter[0] = static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0];
    counter[1] = static_cast<uint32_t>(product1);
    counter[2] = static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1];
    counter[3] = static_cast<uint32_t>(product0);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter[0];
}

}  // namespace cortado::gpu
