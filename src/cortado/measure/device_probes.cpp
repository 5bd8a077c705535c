#include "cortado/measure/device_probes.h"

#include <algorithm>
#include <vector>

#include "cortado/base/parallel_for.h"
#include "cortado/device/cuda.h"
#include "cortado/device/memory.h"
#include "cortado/exec/device_kernels.h"
#include "cortado/exec/time_task.h"
#include "cortado/kernels/gpu/passes.h"
#include "cortado/layers/convolution.h"
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

std::string device_text(const device::DeviceRuntime& device) {
  if (!device.runs_gpu_work()) return "";
  if (device.runs_host_functions()) return "emulated";
  const std::vector<device::Gpu> gpus = device::gpus();  // those of one host are of one kind
  return gpus.empty() ? "GPU" : gpus.front().name;
}

double measure_device_rate(device::DeviceRuntime& device) {
  constexpr double enough = 0.004;  // seconds: much longer than a launch
  constexpr int64_t most = 4096;
  const auto layer = std::make_shared<Convolution>(
      ConvolutionOptions{.num_output = 32, .bias_term = false, .kernel = {3}, .pad = {1}});
  const std::string kernels = kernels_on(device, "", false).kernels;
  for (int64_t samples = 1;; samples *= 4) {
    const Shape inputs[] = {{samples, 16, 16, 16}};
    const Task task = whole_task(layer, Phase::test, inputs, 1);
    const double seconds = time_task(task, kernels, usual_runs, device).forward.count;
    if (seconds < enough && samples < most) continue;
    return layer->forward_flops(task.inputs, task.outputs).count / seconds;
  }
}

DeviceRates measure_device(device::DeviceRuntime& device) {
  constexpr int64_t count = int64_t{1} << 22;
  constexpr int sweeps = 5, launches = 100;
  const device::Memory memory({2 * count * probes::float_bytes}, device);
  float* const from = device.for_kernels(memory.floats());
  device::Queue& queue = device.queue();
  const auto seconds_of = [&](auto&& work) {
    return probes::seconds_of([&] {
      queue.launch(work);
      queue.finish();
    });
  };
  std::vector<double> copies, empty;
  for (int sweep = 0; sweep < sweeps; ++sweep)
    copies.push_back(seconds_of([&] { gpu::copy(queue.stream(), from + count, from, count); }));
  for (int launch = 0; launch < launches; ++launch) empty.push_back(seconds_of([] {}));
  return {
      .flops = measure_device_rate(device),
      .memory_bandwidth = {static_cast<double>(2 * count * probes::float_bytes) / std::ranges::min(copies)},
      .task_overhead = {probes::median(std::move(empty))}};
}

}  // namespace cortado
