#include "cortado/sim/flows.h"

#include <algorithm>
#include <limits>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr double rounding = 1e-12;  // relative

}  // namespace

int Flows::start(double seconds, std::vector<Load> loads) {
  for (const Load& load : loads)
    ensure(load.share > 0 && load.share <= 1 + rounding, "a flow alone finds its ports free");
  flows_.emplace(next_, Flow{seconds, seconds, std::move(loads)});
  changed_ = true;
  return next_++;
}

// All flows speed up together until a port is full; those that use it stay at that speed; and so on.
void Flows::set_speeds() {
  if (!changed_) return;
  changed_ = false;
  std::fill(ports_.begin(), ports_.end(), Port{});
  std::vector<Flow*> open;
  for (auto& [number, flow] : flows_) {
    flow.speed = 1;
    open.push_back(&flow);
    for (const Load& load : flow.loads) ports_[static_cast<size_t>(load.port)].waiting += load.share;
  }
  const auto limit = [&](const Load& load) {
    const Port& port = ports_[static_cast<size_t>(load.port)];
    return std::max(0.0, 1 - port.taken) / port.waiting;
  };
  while (!open.empty()) {
    double speed = 1;
    for (const Flow* flow : open)
      for (const Load& load : flow->loads) speed = std::min(speed, limit(load));
    if (speed >= 1 - rounding) return;
    const auto full = [&](const Flow* flow) {
      return std::ranges::any_of(flow->loads,
                                 [&](const Load& load) { return limit(load) <= speed * (1 + rounding); });
    };
    const auto set = std::ranges::stable_partition(open, [&](const Flow* flow) { return !full(flow); });
    for (Flow* flow : set) {
      flow->speed = speed;
      for (const Load& load : flow->loads) {
        Port& port = ports_[static_cast<size_t>(load.port)];
        port.taken += speed * load.share;
        port.waiting -= load.share;
      }
    }
    open.erase(set.begin(), set.end());
  }
}

double Flows::speed(int flow) {
  set_speeds();
  return flows_.at(flow).speed;
}

double Flows::next_end() {
  set_speeds();
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [number, flow] : flows_) first = std::min(first, flow.left / flow.speed);
  return first;
}

std::vector<int> Flows::advance(double seconds) {
  set_speeds();
  std::vector<int> ended;
  for (auto& [number, flow] : flows_) {
    flow.left -= seconds * flow.speed;
    if (flow.left <= rounding * flow.whole) ended.push_back(number);
  }
  for (int number : ended) flows_.erase(number);
  if (!ended.empty()) changed_ = true;
  return ended;
}

}  // namespace cortado
