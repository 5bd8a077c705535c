#include "cortado/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "cortado/base/error.h"

namespace cortado {
namespace {

double policy_rate(const LearningRateOptions& o, int64_t iteration) {
  using Policy = LearningRateOptions::Policy;
  double t = static_cast<double>(iteration);
  switch (o.policy) {
    case Policy::fixed:
      return o.base;
    case Policy::step:
    case Policy::multistep:
      return o.base * std::pow(o.gamma, learning_rate_step(o, iteration));
    case Policy::exp:
      return o.base * std::pow(o.gamma, t);
    case Policy::inv:
      return o.base * std::pow(1 + o.gamma * t, -o.power);
    case Policy::poly: {
      double left = 1 - t / static_cast<double>(o.max_iterations);
      return o.base * std::pow(std::max(0.0, left), o.power);
    }
    case Policy::sigmoid:
      return o.base / (1 + std::exp(-o.gamma * (t - static_cast<double>(o.stepsize))));
    case Policy::cosine: {
      const double passed = std::min(1.0, t / static_cast<double>(o.max_iterations));
      return o.base * (1 + std::cos(std::numbers::pi * passed)) / 2;
    }
  }
  throw InternalError("unknown learning-rate policy");
}

}  // namespace

int learning_rate_step(const LearningRateOptions& o, int64_t iteration) {
  if (o.policy == LearningRateOptions::Policy::step) return static_cast<int>(iteration / o.stepsize);
  if (o.policy != LearningRateOptions::Policy::multistep) return 0;
  // At most one step an iteration, in the order of the file.
  int steps = 0;
  int64_t next = 0;
  for (int64_t value : o.stepvalues) {
    next = std::max(next, value);
    if (next > iteration) break;
    ++steps;
    ++next;
  }
  return steps;
}

double learning_rate(const LearningRateOptions& o, int64_t iteration) {
  double rate = policy_rate(o, iteration);
  if (iteration >= o.warmup_iterations) return rate;
  double grown = static_cast<double>(iteration) / static_cast<double>(o.warmup_iterations);
  return o.warmup_start + (rate - o.warmup_start) * grown;
}

}  // namespace cortado
