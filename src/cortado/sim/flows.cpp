#include "cortado/sim/flows.h"

#include <algorithm>
#include <utility>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr double rounding = 1e-12;  // relative
constexpr double together = 1e-9;   // of a flow's time: too little to tell its end from another's

}  // namespace

int Flows::start(double seconds, std::vector<Load> loads, double needed) {
  for (const Load& load : loads) ensure(load.share > 0, "a flow uses its ports");
  pass();
  flows_.push_back({next_, seconds, seconds, std::move(loads), needed});
  changed_ = true;
  return next_++;
}

bool Flows::later_use(const std::vector<Load>& loads, double needed) const {
  return std::ranges::any_of(flows_, [&](const Flow& flow) {
    return flow.needed > needed &&
           std::ranges::find_first_of(flow.loads, loads, {}, &Load::port, &Load::port) != flow.loads.end();
  });
}

// Makes `left` true for now.
void Flows::pass() {
  if (passed_ == 0) return;
  for (Flow& flow : flows_) flow.left -= passed_ * flow.speed;
  first_end_ -= passed_;
  passed_ = 0;
}

double Flows::Port::limit() const {
  return waiting > 0 ? std::max(0.0, 1 - taken) / waiting : std::numeric_limits<double>::infinity();
}

void Flows::set_speeds() {
  if (!changed_) return;
  changed_ = false;
  for (Port& port : ports_) port.taken = port.waiting = 0;
  std::vector<Flow*> order;
  for (Flow& flow : flows_) order.push_back(&flow);
  std::ranges::stable_sort(order, {}, &Flow::needed);
  for (auto first = order.begin(); first != order.end();) {
    const auto last =
        std::find_if(first, order.end(), [&](Flow* flow) { return flow->needed > (*first)->needed; });
    std::vector<Port*> ports;  // of those that are needed at one time
    for (; first != last; ++first) {
      Flow& flow = **first;
      flow.speed = 1;
      flow.open = true;
      for (const Load& load : flow.loads) {
        Port& port = ports_[static_cast<size_t>(load.port)];
        if (port.waiting == 0) {
          port.flows.clear();
          ports.push_back(&port);
        }
        port.waiting += load.share;
        port.flows.push_back(&flow);
      }
    }
    fill(ports);
  }
  first_end_ = std::numeric_limits<double>::infinity();
  for (const Flow& flow : flows_) first_end_ = std::min(first_end_, flow.left / flow.speed);
}

// All flows that wait speed up together until a port is full; those that use it stay at that speed; and so
// on. At the end none waits.
void Flows::fill(const std::vector<Port*>& ports) {
  const auto settle = [&](Port& port, double speed) {
    for (Flow* flow : port.flows) {
      if (!flow->open) continue;
      flow->open = false;
      flow->speed = speed;
      for (const Load& load : flow->loads) {
        Port& other = ports_[static_cast<size_t>(load.port)];
        other.taken += speed * load.share;
        other.waiting -= load.share;
      }
    }
  };
  double speed = 0;
  while (true) {
    double least = 1;
    for (const Port* port : ports) least = std::min(least, port->limit());
    if (least >= 1 - rounding) break;
    speed = std::max(speed, least);  // less is but rounding
    std::vector<Port*> full;
    for (Port* port : ports)
      if (port->limit() <= speed * (1 + rounding)) full.push_back(port);
    for (Port* port : full) settle(*port, speed);
    // What rounding left of their sums.
    for (Port* port : full) port->waiting = 0;
  }
  for (Port* port : ports) settle(*port, 1);
  for (Port* port : ports) port->waiting = 0;
}

double Flows::speed(int number) {
  set_speeds();
  return flow(number).speed;
}

double Flows::done(int number) const {
  const Flow& of = flow(number);
  return of.whole > 0 ? 1 - (of.left - passed_ * of.speed) / of.whole : 1;
}

const Flows::Flow& Flows::flow(int number) const {
  const auto found = std::ranges::lower_bound(flows_, number, {}, &Flow::number);
  ensure(found != flows_.end() && found->number == number, "the flow is under way");
  return *found;
}

Flows::Flow& Flows::flow(int number) { return const_cast<Flow&>(std::as_const(*this).flow(number)); }

double Flows::next_end() {
  set_speeds();
  return first_end_ - passed_;
}

std::vector<int> Flows::advance(double seconds) {
  set_speeds();
  passed_ += seconds;
  std::vector<int> ended;
  if (passed_ < first_end_ * (1 - together)) return ended;
  pass();
  std::erase_if(flows_, [&](const Flow& flow) {
    const bool ends = flow.left <= together * flow.whole;
    if (ends) ended.push_back(flow.number);
    return ends;
  });
  if (!ended.empty()) changed_ = true;
  return ended;
}

}  // namespace cortado
