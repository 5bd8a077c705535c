#include "cortado/kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

using Widest = float __attribute__((vector_size(__BIGGEST_ALIGNMENT__)));  // the build's widest vector
constexpr int64_t lanes = sizeof(Widest) / sizeof(float);
constexpr int chains = 10;  // independent sums: more than latency times issue width of a core
constexpr int64_t rounds = 1'000'000;
// The best such time counts: longer than what a scheduler gives a process that shares its core, or a control
// group, at a time, so that those measure their share.
constexpr double window = 0.1;  // seconds

// Runs the chains and gives a value that depends on all of them, so that none is left out.
float multiply_add_chains(float start) {
  Widest sums[chains];
  for (int c = 0; c < chains; ++c) sums[c] = Widest{} + (start + static_cast<float>(c));
  const Widest factor = Widest{} + 0.999f, term = Widest{} + start;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 10
    for (int c = 0; c < chains; ++c) sums[c] = sums[c] * factor + term;
  }
  Widest total{};
  for (const Widest& sum : sums) total += sum;
  return total[0];
}

}  // namespace

double measure_peak(Seconds duration) {
  using Clock = std::chrono::steady_clock;
  constexpr double work = 2.0 * chains * rounds * lanes;
  int threads = compute_threads();
  std::vector<float> kept(static_cast<size_t>(threads));
  double best = 0, spent = 0;
  while (spent < duration.count) {
    const auto start = Clock::now();
    double seconds = 0, done = 0;
    while (seconds < window) {
      parallel_for(threads, [&](int64_t t) { kept[static_cast<size_t>(t)] += multiply_add_chains(1e-3f); });
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
      done += work * threads;
    }
    spent += seconds;
    best = std::max(best, done / seconds);
  }
  return kept.front() >= 0 ? best : 0;
}

}  // namespace cortado
