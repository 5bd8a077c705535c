#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "cortado/kernels/update_rules.h"

namespace cortado {

// How a gradient changes a parameter.
struct UpdateOptions {
  enum class Solver { sgd, nesterov, adagrad, rmsprop, adadelta, adam, lars };
  enum class Regularization { l2, l1 };
  Solver solver = Solver::sgd;
  Regularization regularization = Regularization::l2;
  double momentum = 0;       // Adam's beta1, AdaDelta's decay
  double momentum2 = 0.999;  // Adam's beta2
  double delta = 1e-8;       // added to denominators
  double rms_decay = 0.99;
  double weight_decay = 0;
  double lars_eta = 0.001;  // LARS' trust coefficient
  bool operator==(const UpdateOptions&) const = default;
};

// One parameter's memory: weights, gradient, and what the solver remembers, all in one order and size.
struct UpdateArguments {
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* history[2] = {nullptr, nullptr};  // the first history_count() of them
  int64_t elements = 0;
};

// Sums of squares over a whole parameter.
struct SquareSums {
  double weights = 0, gradient = 0;
};

// The numbers of one update of one parameter.
struct UpdateStep {
  double rate = 0;                    // learning rate * lr_mult
  double decay = 0;                   // weight decay * decay_mult
  double gradient_scale = 1;          // 1 / iter_size, and what clipping takes off
  int64_t iteration = 0;              // counted from 0; Adam corrects its bias by it
  bool layer_wise = true;             // LARS: false leaves the rate alone (biases and normalization scales)
  std::optional<SquareSums> squares;  // LARS: where the arrays are a slice; nothing: theirs
};

// Tensors of history a parameter needs: 1; AdaDelta and Adam 2.
int history_count(UpdateOptions::Solver solver);

// Updates a parameter in a single pass over its memory (LARS: two, for the norms come first), on all compute
// threads. With g = gradient_scale * gradient + decay * (w or, for L1, sign(w)):
//   SGD       h = rate*g + momentum*h;  w -= h
//   Nesterov  h' = rate*g + momentum*h;  w -= (1+momentum)*h' - momentum*h
//   AdaGrad   h += g^2;  w -= rate*g / (sqrt(h) + delta)
//   RMSProp   h = rms_decay*h + (1-rms_decay)*g^2;  w -= rate*g / (sqrt(h) + delta)
//   AdaDelta  h = momentum*h + (1-momentum)*g^2;  u = g*sqrt((h2+delta)/(h+delta));
//             h2 = momentum*h2 + (1-momentum)*u^2;  w -= rate*u
//   Adam      h = momentum*h + (1-momentum)*g;  h2 = momentum2*h2 + (1-momentum2)*g^2;  t = iteration+1;
//             w -= rate * sqrt(1-momentum2^t)/(1-momentum^t) * h / (sqrt(h2) + delta)
//   LARS      SGD with rate * eta*|w| / (|g| + decay*|w|), |g| without decay; plain SGD where either is 0
//             (You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017, section 5)
// (Caffe's solvers; L1 and L2 decay come after scaling, before the history.) Elements whose weight, gradient
// and history are 0 stay 0. Returns whether all weights and history that it wrote are finite, which those of
// a gradient that is not never are.
bool update_parameter(const UpdateOptions& options, const UpdateArguments& arguments, const UpdateStep& step);

// For those who apply the formulas on other devices.
namespace update_rules {

inline Gradient gradient_of(const UpdateOptions& o, const UpdateStep& step) {
  return {static_cast<float>(step.gradient_scale), static_cast<float>(step.decay),
          o.regularization == UpdateOptions::Regularization::l1};
}

// Returns visit(rule, number of histories) with the solver's rule; the number is a std::integral_constant.
// `rate`: that of the layer.
template <typename Visit>
auto with_rule(const UpdateOptions& o, const UpdateStep& step, double layer_rate, Visit&& visit) {
  using Solver = UpdateOptions::Solver;
  constexpr std::integral_constant<int, 1> one{};
  constexpr std::integral_constant<int, 2> two{};
  const auto rate = static_cast<float>(layer_rate), delta = static_cast<float>(o.delta);
  const auto momentum = static_cast<float>(o.momentum);
  switch (o.solver) {
    case Solver::sgd:
    case Solver::lars:
      return visit(Momentum{rate, momentum}, one);
    case Solver::nesterov:
      return visit(Nesterov{rate, momentum}, one);
    case Solver::adagrad:
      return visit(AdaGrad{rate, delta}, one);
    case Solver::rmsprop:
      return visit(RmsProp{rate, delta, static_cast<float>(o.rms_decay), static_cast<float>(1 - o.rms_decay)},
                   one);
    case Solver::adadelta:
      return visit(AdaDelta{rate, delta, momentum, static_cast<float>(1 - o.momentum)}, two);
    case Solver::adam:
      break;
  }
  const double t = static_cast<double>(step.iteration) + 1;
  const double correction = std::sqrt(1 - std::pow(o.momentum2, t)) / (1 - std::pow(o.momentum, t));
  return visit(
      Adam{static_cast<float>(layer_rate * correction), delta, momentum, static_cast<float>(o.momentum2),
           static_cast<float>(1 - o.momentum), static_cast<float>(1 - o.momentum2)},
      two);
}

}  // namespace update_rules

}  // namespace cortado
