#include "cortado/measure/job_times.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <link.h>
#include <span>
#include <utility>

#include "cortado/base/digest.h"
#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/seconds_since.h"
#include "cortado/base/version.h"
#include "cortado/comm/values_of_ranks.h"
#include "cortado/cost/measured.h"
#include "cortado/device/memory.h"
#include "cortado/exec/device_kernels.h"
#include "cortado/exec/time_task.h"
#include "cortado/kernels/gpu/passes.h"
#include "cortado/kernels/peak.h"
#include "cortado/kernels/update.h"
#include "cortado/layers/problem.h"
#include "cortado/machine/file.h"
#include "cortado/measure/cache.h"
#include "cortado/measure/device_probes.h"
#include "cortado/measure/job_machine.h"
#include "cortado/measure/link_probes.h"

namespace cortado {
namespace {

constexpr double machine_seconds = 1.5;  // about, to measure the machine
constexpr double look_seconds = 0.02;    // to look whether its links are what they were
constexpr double rate_seconds = 0.1;     // the same of what its ranks compute beside each other

// The program and, where rooms are libraries of their own (scripts/portable.sh), those that the loader took
// for this processor.
std::vector<std::string> program_files() {
  std::vector<std::string> files{"/proc/self/exe"};
  const auto collect = [](dl_phdr_info* loaded, size_t, void* found) {
    const std::filesystem::path path = loaded->dlpi_name;
    if (path.filename().string().starts_with("libcortado_"))
      static_cast<std::vector<std::string>*>(found)->push_back(path);
    return 0;
  };
  dl_iterate_phdr(collect, &files);
  return files;
}

// Version and very build: kernels of one version may change.
std::string build_id() {
  static const std::string id = [] {
    std::string digests;
    for (const std::string& file : program_files())
      digests += fmt::format("{:016x}", digest(read_file(file)));
    return fmt::format("{}, build {:016x}", version(), digest(digests));
  }();
  return id;
}

// Equal ranks together: "2 x AMD EPYC, 2 cores, 1 thread".
std::string described(const std::vector<RankFacts>& ranks, const std::vector<int>& nodes, bool hosts) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    auto equal = [&](const RankFacts& a, const RankFacts& b) {
      return std::strcmp(a.host, b.host) == 0 && std::strcmp(a.processor, b.processor) == 0 &&
             std::strcmp(a.device, b.device) == 0 && a.cores == b.cores && a.threads == b.threads;
    };
    while (end < ranks.size() && nodes[end] == nodes[i] && equal(ranks[end], ranks[i])) ++end;
    const RankFacts& facts = ranks[i];
    text += fmt::format("{}{}{} x {}{}, {} cores, {} threads", text.empty() ? "" : "; ",
                        hosts ? fmt::format("{}: ", facts.host) : "", end - i,
                        facts.device[0] != 0 ? fmt::format("{} beside ", facts.device) : "",
                        facts.processor[0] != 0 ? facts.processor : "unknown processor", facts.cores,
                        facts.threads);
    i = end;
  }
  return text;
}

// Whether ranks' rates, each against the highest, are about the same.
bool near(const std::vector<double>& now, const std::vector<double>& before) {
  constexpr double factor = 1.5;
  for (size_t rank = 0; rank < now.size(); ++rank) {
    const double change = now[rank] / std::ranges::max(now) / (before[rank] / std::ranges::max(before));
    if (change > factor || change * factor < 1) return false;
  }
  return true;
}

// Looks again where a look disagrees with what is kept: one alone may be chance.
template <typename Look>
bool agrees_in_some_look(Look&& look) {
  constexpr int looks = 3;
  for (int i = 0; i < looks; ++i)
    if (look()) return true;
  return false;
}

// What one task takes a rank.
struct RankTime {
  uint64_t problem = 0;
  PassTimes passes;
};

}  // namespace

JobTimes::JobTimes(Communicator& job, Notices notify, device::DeviceRuntime& device)
    : job_(job), notify_(std::move(notify)), device_(device) {
  const std::vector<RankFacts> ranks = facts_of_job(job, device);
  on_devices_ = on_devices(ranks);
  mixed_devices_ = cortado::mixed_devices(ranks);
  const std::vector<int> nodes = nodes_of_ranks(ranks);
  equal_processors_ = !mixed_devices_ && std::ranges::all_of(ranks, [&](const RankFacts& one) {
    return std::string_view(one.processor) == ranks[0].processor;
  });
  about_ = described(ranks, nodes, false);
  const std::string with_hosts = described(ranks, nodes, true);
  machine_file_ = fmt::format("machine-{:016x}.json", digest(with_hosts + build_id()));
  times_file_ = fmt::format("tasks-{:016x}.json", digest(about_ + build_id()));
  find_machine();
  find_fast_ranks();
  find_times();
}

void JobTimes::notify(const std::string& line) const {
  if (notify_ && job_.rank() == 0) notify_(line);
}

void JobTimes::find_fast_ranks() {
  constexpr double as_fast = 0.9;
  const std::vector<double> weights = machine_->weights();
  fast_.assign(static_cast<size_t>(job_.size()), true);
  if (weights.empty()) return;
  const double most = std::ranges::max(weights);
  for (size_t rank = 0; rank < weights.size(); ++rank) fast_[rank] = weights[rank] >= as_fast * most;
  alone_ = static_cast<int>(std::ranges::max_element(weights) - weights.begin());
}

// True when the links between hosts are as they were, within factors by which quick measurements of one link
// differ. Links within a host are not compared: they differ by much more, by where the system lets ranks run,
// and little depends on them.
bool JobTimes::links_agree(const DeviceGraph& kept) const {
  constexpr double bandwidths = 1.5, latencies = 4;
  const std::vector<int> nodes = kept.node_of_devices();
  if (nodes.back() == 0) return true;
  const size_t ranks = nodes.size();
  const std::vector<Link> now = measure_pairs(job_, nodes, {look_seconds});
  auto near = [](double a, double b, double factor) { return a <= b * factor && b <= a * factor; };
  for (size_t pair = 0; pair < now.size(); ++pair) {
    const size_t from = pair / ranks, to = pair % ranks;
    if (nodes[from] == nodes[to]) continue;
    const Link &one = now[pair], other = kept.link(static_cast<int>(from), static_cast<int>(to));
    if (!near(one.bandwidth.bytes_per_second, other.bandwidth.bytes_per_second, bandwidths) ||
        !near(one.latency.count, other.latency.count, latencies))
      return false;
  }
  return true;
}

// What ranks compute in a second against the one that computes most, all of them at the same time.
bool JobTimes::rates_agree(const DeviceGraph& kept) const {
  std::vector<double> before = kept.weights();
  if (before.empty()) before.assign(static_cast<size_t>(job_.size()), 1);
  job_.barrier();
  return near(values_of_ranks(job_, rate()), before);
}

double JobTimes::rate() const {
  return on_devices_ ? measure_device_rate(device_) : measure_compute_rate({rate_seconds}).sustained;
}

bool JobTimes::agrees(const DeviceGraph& kept) const {
  if (kept.devices() != job_.size()) return false;
  return job_.size() == 1 || (agrees_in_some_look([&] { return links_agree(kept); }) &&
                              agrees_in_some_look([&] { return rates_agree(kept); }));
}

std::optional<Seconds> JobTimes::known(const std::string& what) const {
  return times_->find_duration(on_machine(what));
}

void JobTimes::keep(const std::string& what, Seconds seconds) {
  times_->add_duration(on_machine(what), seconds);
}

const TaskTime* JobTimes::known(const Task& task, const std::string& kernels) const {
  return times_->find(problem_of(task, kernels));
}

void JobTimes::keep(const Task& task, const std::string& kernels, const TaskTime& time) {
  times_->add(problem_of(task, kernels), time);
}

std::string JobTimes::on_machine(const std::string& what) const {
  return fmt::format("{} on machine {:016x}", what, digest(machine_text(*machine_)));
}

void JobTimes::find_machine() {
  // Rank 0's file decides for all.
  const std::string kept =
      from_first_rank(job_, job_.rank() == 0 ? read_cached(machine_file_, notify_).value_or("") : "");
  if (!kept.empty()) {
    try {
      DeviceGraph graph = parse_machine(kept, cache_folder() + "/" + machine_file_);
      if (agrees(graph)) {
        machine_ = std::make_unique<DeviceGraph>(std::move(graph));
        return;
      }
    } catch (const UserError& problem) {
      notify(fmt::format("{}; it is measured anew", problem.what()));
    }
  }
  const std::string text = machine_text(DeviceGraph(measure_machine(job_, machine_seconds, device_)));
  machine_ = std::make_unique<DeviceGraph>(parse_machine(from_first_rank(job_, text), "the machine"));
  machine_measured_ = true;
  if (job_.rank() == 0) write_cached(machine_file_, machine_text(*machine_), notify_);
}

void JobTimes::find_times() {
  times_ = std::make_unique<TaskTimes>(about_, build_id());
  const std::string kept =
      from_first_rank(job_, job_.rank() == 0 ? read_cached(times_file_, notify_).value_or("") : "");
  const std::string build = from_first_rank(job_, build_id());
  if (!kept.empty()) {
    try {
      TaskTimes read(about_, build);
      read.read(kept, cache_folder() + "/" + times_file_);
      *times_ = std::move(read);
    } catch (const UserError& problem) {
      notify(problem.what());
    }
  }
  if (!times_->find_duration(MeasuredCosts::update_name)) measure_update();
}

TaskTime JobTimes::measure(const Task& task, const std::string& kernels, int most_runs) const {
  job_.barrier();
  const bool takes_part = task.cut || job_.rank() == alone_;
  const std::string own = kernels_on(device_, kernels, mixed_devices_).kernels;
  return slowest(digest(problem_of(task)),
                 takes_part ? time_task(task, own, most_runs, device_) : PassTimes{});
}

// Returns the slowest rank's time. Where ranks are unequal, only those about as fast as the fastest count.
Seconds JobTimes::slowest(const std::vector<Seconds>& ranks) const {
  Seconds slowest;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    if (fast_[rank]) slowest = std::max(slowest, ranks[rank]);
  return slowest;
}

// The same of each pass of a task.
TaskTime JobTimes::slowest(uint64_t problem, const PassTimes& mine) const {
  const std::vector<RankTime> all = values_of_ranks(job_, RankTime{problem, mine});
  for (const RankTime& one : all) ensure(one.problem == problem, "all ranks measure the same task");
  const auto pass = [&](Seconds PassTimes::*of_pass) {
    std::vector<Seconds> ranks;
    for (const RankTime& one : all) ranks.push_back(one.passes.*of_pass);
    return slowest(ranks);
  };
  return {pass(&PassTimes::forward), pass(&PassTimes::backward_weights), pass(&PassTimes::backward)};
}

// One update of a parameter of a quarter of `memory`.
Seconds JobTimes::update_once(const device::Memory& memory) const {
  const int64_t size = memory.size().count / 4;
  const auto reached = [&](int64_t part) { return device_.for_kernels(memory.floats(part * size)); };
  const UpdateArguments arguments{.weights = reached(0),
                                  .gradient = reached(1),
                                  .history = {reached(2), nullptr},
                                  .elements = elements_in({size}, ElementType::f32)};
  UpdateOptions options;
  options.momentum = 0.9;
  device::Queue& queue = device_.queue();
  const auto start = std::chrono::steady_clock::now();
  queue.launch([&] {
    if (device_.runs_gpu_work())
      gpu::update_parameter(queue.stream(), options, arguments, {.rate = 0.01}, reached(3), nullptr);
    else
      update_parameter(options, arguments, {.rate = 0.01});
  });
  queue.finish();
  return seconds_since(start);
}

// Measures on all ranks at the same time, and takes the median of a few.
void JobTimes::measure_update() {
  constexpr int runs = 5;
  const device::Memory memory({4 * MeasuredCosts::measured_update.count}, device_);
  std::vector<Seconds> seconds;
  for (int run = 0; run <= runs; ++run) {
    job_.barrier();
    const Seconds taken = update_once(memory);
    if (run > 0) seconds.push_back(taken);  // the first one touches new memory
  }
  std::ranges::nth_element(seconds, seconds.begin() + runs / 2);
  times_->add_duration(MeasuredCosts::update_name, slowest(values_of_ranks(job_, seconds[runs / 2])));
}

void JobTimes::save() {
  const std::string text = times_->text();
  if (job_.rank() == 0 && text != kept_) write_cached(times_file_, text, notify_);
  kept_ = text;
}

}  // namespace cortado
