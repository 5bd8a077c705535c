#include "cortado/kernels/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/base/seconds_since.h"

namespace cortado {
namespace {

using Widest = float __attribute__((vector_size(__BIGGEST_ALIGNMENT__)));  // the build's widest vector
constexpr int64_t lanes = sizeof(Widest) / sizeof(float);
constexpr int chains = 10;  // independent sums: more than latency times issue width of a core
constexpr int64_t rounds = 1'000'000;
constexpr double sustained_seconds = 0.1;

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

ComputeRate measure_compute_rate(Seconds duration) {
  constexpr double work = 2.0 * chains * rounds * lanes;
  const int threads = compute_threads();
  std::vector<float> kept(static_cast<size_t>(threads));
  ComputeRate rate;
  double spent = 0, all = 0, runs = 0, seconds = 0;  // in all; since a sustained run began
  while (spent < duration.count || rate.sustained == 0) {
    const auto start = std::chrono::steady_clock::now();
    parallel_for(threads, [&](int64_t t) { kept[static_cast<size_t>(t)] += multiply_add_chains(1e-3f); });
    const double once = seconds_since(start).count;
    rate.peak = std::max(rate.peak, work * threads / once);
    spent += once, ++all, seconds += once, ++runs;
    if (seconds < sustained_seconds) continue;
    rate.sustained = std::max(rate.sustained, runs * work * threads / seconds);
    runs = seconds = 0;
  }
  rate.mean = all * work * threads / spent;
  return kept.front() >= 0 ? rate : ComputeRate{};
}

double measure_peak(Seconds duration) { return measure_compute_rate(duration).peak; }

}  // namespace cortado
