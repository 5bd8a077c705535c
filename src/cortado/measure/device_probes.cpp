#include "cortado/measure/device_probes.h"

#include <algorithm>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/device/memory.h"
#include "cortado/measure/probe_timing.h"

namespace cortado {

Bandwidth measure_memory_bandwidth(Seconds duration) {
  constexpr int64_t count = int64_t{1} << 24;  // 64 MiB an array
  const device::Memory memory({3 * count * probes::float_bytes});
  float *a = memory.floats(), *b = a + count, *c = b + count;
  auto sweep = [&] {
    parallel_ranges(count, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) a[i] = b[i] + 3.0f * c[i];
    });
  };
  parallel_ranges(3 * count, [&](int64_t begin, int64_t end) { std::fill(a + begin, a + end, 1.0f); });
  double best = probes::seconds_of(sweep), spent = best;
  while (spent < duration.count) {
    const double seconds = probes::seconds_of(sweep);
    best = std::min(best, seconds);
    spent += seconds;
  }
  return {static_cast<double>(3 * count * probes::float_bytes) / best};
}

Seconds measure_task_overhead() {
  constexpr int times = 1000;
  std::vector<char> touched(static_cast<size_t>(compute_threads()));
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    seconds.push_back(probes::seconds_of([&] {
      parallel_for(compute_threads(), [&](int64_t thread) { touched[static_cast<size_t>(thread)] = 1; });
    }));
  }
  return {probes::median(std::move(seconds))};
}

}  // namespace cortado
