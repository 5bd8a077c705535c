#include "cortado/kernels/pairs/dot_rate.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "cortado/base/seconds_since.h"
#include "cortado/kernels/pairs/dot.h"

namespace cortado::pairs {

namespace {

constexpr int chains = 10;  // independent sums: more than latency times issue width of a core
constexpr int rounds = 2000, runs = 8;

CORTADO_BEGIN_PAIRS

struct Dots {
  [[gnu::always_inline]] static Floats add(Floats sum, Floats factor) {
    return dot(sum, reinterpret_cast<Words>(factor), reinterpret_cast<Words>(factor));
  }
};
struct MultiplyAdds {
  [[gnu::always_inline]] static Floats add(Floats sum, Floats factor) { return sum * factor + factor; }
};

// Seconds of the rounds; `kept` depends on all sums, so that none is left out.
template <typename Operation>
double seconds_of(float start, volatile float& kept) {
  const auto begin = std::chrono::steady_clock::now();
  Floats sums[chains];
  for (int c = 0; c < chains; ++c) sums[c] = Floats{} + start;
  const Floats factor = Floats{} + start;
  for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 10
    for (int c = 0; c < chains; ++c) sums[c] = Operation::add(sums[c], factor);
  }
  Floats total{};
  for (const Floats& sum : sums) total += sum;
  kept = total[0];
  return seconds_since(begin).count;
}

CORTADO_END_PAIRS

}  // namespace

double dots_for_a_multiply_add() {
  double dots = std::numeric_limits<double>::infinity(), multiply_adds = dots;
  volatile float start = 0.5F, kept = 0;
  for (int run = 0; run < runs; ++run) {
    dots = std::min(dots, seconds_of<Dots>(start, kept));
    multiply_adds = std::min(multiply_adds, seconds_of<MultiplyAdds>(start, kept));
  }
  return multiply_adds / dots;
}

}  // namespace cortado::pairs
