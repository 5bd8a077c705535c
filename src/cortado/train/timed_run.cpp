#include "cortado/train/timed_run.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "cortado/base/compute_threads.h"
#include "cortado/base/resident_memory.h"
#include "cortado/base/seconds_since.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/kernels/peak.h"
#include "cortado/train/job_trace.h"

namespace cortado {
namespace {

// The most timelines kept, evenly over the run: which iteration is nearest the median is known only at its
// end.
constexpr int most_kept = 32;

RunReport::Drawn drawn_of(const std::vector<IterationTimes>& times, size_t index) {
  std::vector<Seconds> steps;
  for (const IterationTimes& iteration : times) steps.push_back(iteration.step);
  std::ranges::sort(steps);
  const size_t last = steps.size() - 1;
  return {.number = static_cast<int>(index) + 1,
          .count = static_cast<int>(steps.size()),
          .step = times[index].step,
          .lower = steps[last / 4],
          .upper = steps[last - last / 4]};
}

}  // namespace

namespace {

// Iterations that are timed, with timelines of some of them.
struct Observed {
  std::vector<IterationTimes> times;
  std::vector<Timeline> kept;
};

Observed observe(Executor& executor, Optimizer& optimizer, int count, size_t stride,
                 const IterationObserver& each) {
  Observed run;
  size_t done = 0;
  run.times = run_iterations(executor, optimizer, count, [&](const IterationTimes& times) {
    if (each) each(times);
    if (done++ % stride == 0) run.kept.push_back(executor.timeline());
  });
  return run;
}

// The iterations with the times of layers of others, which were as many.
std::vector<IterationTimes> with_layers_of(const std::vector<IterationTimes>& layers,
                                           const std::vector<IterationTimes>& whole) {
  std::vector<IterationTimes> times = layers;
  for (size_t i = 0; i < times.size(); ++i) {
    times[i].step = whole[i].step;
    times[i].exposed = whole[i].exposed;
    times[i].data_wait = whole[i].data_wait;
  }
  return times;
}

}  // namespace

std::vector<IterationTimes> run_iterations(Executor& executor, Optimizer& optimizer, int count,
                                           const IterationObserver& each) {
  std::vector<IterationTimes> times;
  for (int i = -warm_up_iterations; i < count; ++i) {
    const int iteration = i + warm_up_iterations;
    const Optimizer::Batch batch{.iteration = iteration, .rate = 1e-6};
    const auto start = std::chrono::steady_clock::now();
    executor.run(static_cast<uint64_t>(iteration),
                 [&optimizer, batch](EntryIndex entry) { optimizer.take_gradient(entry, batch); });
    const Seconds seconds = seconds_since(start);
    if (i < 0) continue;
    times.push_back(times_of(executor.program(), executor.timeline(), seconds,
                             executor.exposed_communication(), executor.data_wait()));
    if (each) each(times.back());
  }
  executor.settle();
  return times;
}

TimedRun time_iterations(Executor& executor, ParameterStore& parameters, Communicator& job, int count,
                         bool slices, const IterationObserver& each) {
  TimedRun run;
  SolverOptions solver;
  solver.update.momentum = 0.9;
  Optimizer optimizer(solver, parameters, parameter_cut_of(executor, &job));
  const double peak = measure_peak();
  const Traffic before = job.traffic();
  const auto stride = static_cast<size_t>((count + most_kept - 1) / most_kept);
  Observed observed = observe(executor, optimizer, count, stride, each);
  run.times = observed.times;
  const Traffic sent = job.traffic();
  const bool apart = std::ranges::max(values_of_ranks(job, executor.time_steps(true) ? 1 : 0)) > 0;
  if (apart) {
    observed = observe(executor, optimizer, count, stride, nullptr);
    run.times = with_layers_of(observed.times, run.times);
    executor.time_steps(false);
  }
  TimeReport& report = run.report = report_of(executor.network(), executor.program(), run.times);
  report.bytes = job.sum(static_cast<double>(sent.sent - before.sent)) / (count + warm_up_iterations);
  report.ranks = job.size();
  report.peak = {apart ? 0 : job.sum(std::max(peak, measure_peak()))};  // of processors
  report.flops = {job.sum(report.flops.count)};
  report.of_peak = fmt::format("peak of {} threads, measured in this run", compute_threads() * job.size());
  run.memory = values_of_ranks(job, peak_resident_memory());
  const device::DeviceRuntime& device = parameters.device();
  run.device_memory = values_of_ranks(job, device.host_accessible() ? Bytes{} : device.most_taken());
  if (!slices) return run;
  const size_t drawn =
      values_of_ranks(job, nearest_to(report, observed.times, stride)).front();  // as rank 0 says
  run.drawn = drawn_of(observed.times, drawn);
  run.slices = slices_of_job(executor, observed.kept[drawn / stride], job);
  return run;
}

std::string memory_text(const TimedRun& run) {
  const auto most = [](const std::vector<Bytes>& of) {
    return fmt::format("{:.1f} MiB", static_cast<double>(std::ranges::max(of).count) / (1 << 20));
  };
  std::string text = most(run.memory) + " resident at most";
  if (std::ranges::max(run.device_memory).count > 0)
    text += fmt::format(", {} of the device's memory", most(run.device_memory));
  return text + (run.memory.size() > 1 ? ", of the rank that needs most" : "");
}

nlohmann::ordered_json run_json(const TimedRun& run) {
  nlohmann::ordered_json json = times_json(run.report);
  for (const IterationTimes& iteration : run.times) json["iteration_seconds"].push_back(iteration.step.count);
  json["threads"] = compute_threads();
  json["peak_memory_bytes"] = std::ranges::max(run.memory).count;
  for (Bytes memory : run.memory) json["peak_memory_bytes_of_ranks"].push_back(memory.count);
  if (std::ranges::max(run.device_memory).count > 0)
    for (Bytes memory : run.device_memory) json["device_memory_bytes_of_ranks"].push_back(memory.count);
  return json;
}

}  // namespace cortado
