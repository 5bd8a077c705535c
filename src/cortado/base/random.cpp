#include "cortado/base/random.h"

#include "cortado/base/philox.h"

namespace cortado {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  philox_rounds(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
  return counter;
}

uint32_t RandomStream::owner_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

// {seed low ^ owner, seed high ^ iteration high}
std::array<uint32_t, 2> RandomStream::key() const {
  return {static_cast<uint32_t>(seed) ^ owner,
          static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(iteration >> 32)};
}

// Counter layout: {index low, index high, iteration low, draw block}. Each Philox call yields four draws.
std::array<uint32_t, 4> RandomStream::four_draws(uint64_t index, uint32_t block) const {
  return philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                 static_cast<uint32_t>(iteration), block},
                key());
}

uint32_t RandomStream::bits(uint64_t index, uint32_t draw) const {
  return four_draws(index, draw / 4)[draw % 4];
}

double RandomStream::normal(uint64_t index, uint32_t draw, double mean, double deviation) const {
  const uint32_t first = 2 * draw;  // even: the next one is of the same four
  const std::array<uint32_t, 4> four = four_draws(index, first / 4);
  const double u = (four[first % 4] + 1.0) * 0x1p-32;  // in (0, 1]
  const double v = four[first % 4 + 1] * 0x1p-32;
  return mean + deviation * std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace cortado
