#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace cortado {

// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011, section 4.3). A number is a pure function of (seed, stream, counter), so it knows
// neither threads nor ranks nor how a tensor is cut (docs/explanation/randomness.md).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// What a stream of random numbers belongs to: one parameter's filler, one layer's dropout at one
// iteration, one sample's augmentation. `name` is hashed (FNV-1a, stable across platforms).
struct RandomStream {
  uint64_t seed = 0;
  uint64_t iteration = 0;
  uint32_t owner = 0;

  static uint32_t owner_of(std::string_view name);

  // 32 random bits for element `index` (a *global* element or sample index) and draw `draw`.
  uint32_t bits(uint64_t index, uint32_t draw = 0) const;
  // Uniform in [0, 1).
  double uniform(uint64_t index, uint32_t draw = 0) const { return bits(index, draw) * 0x1p-32; }
  double uniform(uint64_t index, uint32_t draw, double low, double high) const {
    return low + (high - low) * uniform(index, draw);
  }
  // Normal with the given mean and standard deviation (Box-Muller).
  double normal(uint64_t index, uint32_t draw, double mean, double deviation) const;

  // Draw 0 of `count` neighbours, bit for bit as from the above, as floats; several times as fast.
  void uniforms(uint64_t first, int64_t count, double low, double high, float* values) const;
  void normals(uint64_t first, int64_t count, double mean, double deviation, float* values) const;

 private:
  std::array<uint32_t, 2> key() const;
  std::array<uint32_t, 4> four_draws(uint64_t index, uint32_t block) const;
};

}  // namespace cortado
