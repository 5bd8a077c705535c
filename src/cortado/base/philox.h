#pragma once

#include <cstdint>

namespace cortado {

// The ten rounds of Philox4x32-10 (random.h) on a counter of four words. Where the words of many counters are
// given in a loop, it becomes vector instructions.
inline void philox_rounds(uint32_t& counter0, uint32_t& counter1, uint32_t& counter2, uint32_t& counter3,
                          uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter0, product1 = uint64_t{0xCD9E8D57} * counter2;
    counter0 = static_cast<uint32_t>(product1 >> 32) ^ counter1 ^ key0;
    counter2 = static_cast<uint32_t>(product0 >> 32) ^ counter3 ^ key1;
    counter1 = static_cast<uint32_t>(product1);
    counter3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

}  // namespace cortado
