#include "cortado/cost/measured.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "cortado/layers/problem.h"

namespace cortado {
namespace {

// Winograd's algorithm for 3x3 windows, in tiles of 4x4: 36 multiplications in place of 144.
constexpr double winograd_saving = 4;
// A bound that a measurement beat is lowered to this share of the measurement.
constexpr double lowered = 0.8;

// A measured sum of that many bytes: between two measured ones in proportion, beyond the last one by its
// rate.
double measured_sum(const std::vector<CollectiveTime>& curve, double bytes) {
  const CollectiveTime* before = nullptr;
  for (const CollectiveTime& point : curve) {
    const double at = static_cast<double>(point.bytes.count);
    if (at < bytes) {
      before = &point;
      continue;
    }
    if (before == nullptr) return point.time.count;
    const double from = static_cast<double>(before->bytes.count);
    return before->time.count + (point.time.count - before->time.count) * (bytes - from) / (at - from);
  }
  return before->time.count * bytes / static_cast<double>(before->bytes.count);
}

}  // namespace

MeasuredCosts::MeasuredCosts(const DeviceGraph& machine, TaskTimes& times, TaskTimer timer,
                             std::string kernels)
    : AnalyticCosts(machine),
      machine_(machine),
      times_(times),
      timer_(std::move(timer)),
      kernels_(std::move(kernels)) {
  const std::vector<double> weights = machine_.weights();
  if (weights.empty()) return;
  fastest_ = static_cast<int>(std::ranges::max_element(weights) - weights.begin());
  for (double weight : weights) slowdowns_.push_back(std::ranges::max(weights) / weight);
}

const TaskTime* MeasuredCosts::find(const Task& task) const {
  return times_.find(problem_of(task, kernels_));
}

TaskTime MeasuredCosts::task(const Task& task, int device) {
  const TaskTime* known = find(task);
  return on(device, known ? *known : bound(task));
}

TaskTime MeasuredCosts::on(int device, TaskTime time) const {
  if (slowdowns_.empty()) return time;
  for (Seconds* pass : {&time.forward, &time.backward_weights, &time.backward})
    pass->count *= slowdowns_[static_cast<size_t>(device)];
  return time;
}

TaskTime MeasuredCosts::bound(const Task& task) const {
  TaskTime time;
  time.bound = true;
  const TaskKind kind = kind_of(task);
  if (kind == TaskKind::memory) return time;
  double rate = machine_.device(fastest_).peak_of(product_type(task)).per_second;
  if (kind == TaskKind::convolution) rate *= winograd_saving;
  const Seconds pass{share_ * forward_flops(task).count / rate};
  time.forward = pass;
  if (any_wanted(task.parameter_gradients)) time.backward_weights = pass;
  if (any_wanted(task.input_gradients)) time.backward = pass;
  return time;
}

TaskTime MeasuredCosts::measure(const Task& task, int device) {
  if (const TaskTime* known = find(task)) return on(device, *known);
  TaskTime time = timer_(task);
  time.bound = false;
  ++measurements_;
  const double least = bound(task).total().count;
  if (time.total().count < least) share_ *= lowered * time.total().count / least;
  times_.add(problem_of(task, kernels_), time);
  return on(device, time);
}

Seconds MeasuredCosts::update(Bytes parameters, int device) {
  const std::optional<Seconds> known = times_.find_duration(update_name);
  if (!known) return AnalyticCosts::update(parameters, device);
  const double share = static_cast<double>(parameters.count) / static_cast<double>(measured_update.count);
  const Seconds fastest{share * known->count};
  return slowdowns_.empty() ? fastest : Seconds{fastest.count * slowdowns_[static_cast<size_t>(device)]};
}

double MeasuredCosts::sum_factor(size_t members, Bytes bytes) {
  std::vector<CollectiveTime> curve;
  for (const CollectiveTime& point : machine_.calibration().allreduce)
    if (static_cast<size_t>(point.devices) == members) curve.push_back(point);
  if (curve.empty() || bytes.count == 0) return 1;
  std::ranges::sort(curve, {}, &CollectiveTime::bytes);
  std::vector<int> first(members);
  std::iota(first.begin(), first.end(), 0);
  const double expected = AnalyticCosts::collective(Collective::allreduce, {&first, 1}, bytes).count;
  return expected > 0 ? measured_sum(curve, static_cast<double>(bytes.count)) / expected : 1;
}

Seconds MeasuredCosts::collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) {
  size_t members = 0;
  for (const auto& group : groups) members = std::max(members, group.size());
  if (members < 2) return {};
  return {AnalyticCosts::collective(kind, groups, bytes).count * sum_factor(members, bytes)};
}

}  // namespace cortado
