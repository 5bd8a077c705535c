#pragma once

#include <cmath>

#include "cortado/kernels/everywhere.h"

// What one update makes of one element, by the formulas of update.h, on any device. A rule takes the weight,
// the gradient scaled and regularized, and two numbers of history, of which it changes its own.
namespace cortado::update_rules {

struct Momentum {  // SGD and LARS
  float rate, momentum;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& h, float&) const {
    h = rate * g + momentum * h;
    w -= h;
  }
};
struct Nesterov {
  float rate, momentum;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& h, float&) const {
    const float before = h;
    h = rate * g + momentum * h;
    w -= (1 + momentum) * h - momentum * before;
  }
};
struct AdaGrad {
  float rate, delta;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& h, float&) const {
    h += g * g;
    w -= rate * g / (sqrtf(h) + delta);
  }
};
struct RmsProp {
  float rate, delta, kept, rest;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& h, float&) const {
    h = kept * h + rest * g * g;
    w -= rate * g / (sqrtf(h) + delta);
  }
};
struct AdaDelta {
  float rate, delta, momentum, rest;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& h, float& h2) const {
    h = momentum * h + rest * g * g;
    const float change = g * sqrtf((h2 + delta) / (h + delta));
    h2 = momentum * h2 + rest * change * change;
    w -= rate * change;
  }
};
struct Adam {
  float rate, delta, beta1, beta2, rest1, rest2;
  CORTADO_EVERYWHERE void operator()(float& w, float g, float& m, float& v) const {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    w -= rate * m / (sqrtf(v) + delta);
  }
};

// LARS' rate of a layer: sums of squares over its weights and its gradient, which is scaled by
// `gradient_scale`.
CORTADO_EVERYWHERE inline double layer_wise_rate(double rate, double eta, double decay, double gradient_scale,
                                                 double weight_squares, double gradient_squares) {
  const double weights = sqrt(weight_squares), gradient = gradient_scale * sqrt(gradient_squares);
  if (weights == 0 || gradient == 0) return rate;
  return rate * eta * weights / (gradient + decay * weights);
}

// The gradient that a rule takes.
struct Gradient {
  float scale, decay;
  bool l1;
  CORTADO_EVERYWHERE float operator()(float w, float gradient) const {
    const float sign = static_cast<float>(w > 0) - static_cast<float>(w < 0);
    return scale * gradient + decay * (l1 ? sign : w);
  }
};

}  // namespace cortado::update_rules
