#include "cortado/kernels/update.h"

#include <atomic>
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/kernels/arrays.h"

namespace cortado {
namespace {

// Calls rule(w, g, h0, h1) for each element, g scaled and regularized; the rule changes w and the history.
// Whether they are finite is found in the same pass: 0 times a number is 0, or not a number.
template <bool L1, int Histories, typename Rule>
bool update_elements(const UpdateArguments& a, const UpdateStep& step, const Rule& rule) {
  const float scale = static_cast<float>(step.gradient_scale), decay = static_cast<float>(step.decay);
  std::atomic<bool> finite = true;
  parallel_ranges(a.elements, [&](int64_t begin, int64_t end) {
    float zero = 0;
    float* __restrict weights = a.weights;
    const float* __restrict gradient = a.gradient;
    float* __restrict first = a.history[0];
    float* __restrict second = a.history[1];
#pragma omp simd reduction(+ : zero)
    for (int64_t i = begin; i < end; ++i) {
      float w = weights[i], h0 = first[i], h1 = Histories > 1 ? second[i] : 0.0f;
      float sign = static_cast<float>(w > 0) - static_cast<float>(w < 0);
      float g = scale * gradient[i] + decay * (L1 ? sign : w);
      rule(w, g, h0, h1);
      weights[i] = w;
      first[i] = h0;
      if constexpr (Histories > 1) second[i] = h1;
      zero += 0 * w + 0 * h0 + (Histories > 1 ? 0 * h1 : 0.0f);
    }
    if (zero != 0) finite = false;
  });
  return finite;
}

template <int Histories, typename Rule>
bool regularize_and_update(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step,
                           const Rule& rule) {
  if (o.regularization == UpdateOptions::Regularization::l1) {
    return update_elements<true, Histories>(a, step, rule);
  }
  return update_elements<false, Histories>(a, step, rule);
}

bool update_momentum(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step, double rate) {
  return regularize_and_update<1>(
      o, a, step,
      [rate = static_cast<float>(rate), momentum = static_cast<float>(o.momentum)](float& w, float g,
                                                                                   float& h, float&) {
        h = rate * g + momentum * h;
        w -= h;
      });
}

SquareSums squares_of(const UpdateArguments& a) {
  return {arrays::sum_of_squares(a.weights, a.elements), arrays::sum_of_squares(a.gradient, a.elements)};
}

double layer_wise_rate(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step) {
  SquareSums squares = step.squares ? *step.squares : squares_of(a);
  double weights = std::sqrt(squares.weights), gradient = step.gradient_scale * std::sqrt(squares.gradient);
  if (weights == 0 || gradient == 0) return step.rate;
  return step.rate * o.lars_eta * weights / (gradient + step.decay * weights);
}

bool update_adam(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step) {
  double t = static_cast<double>(step.iteration) + 1;
  double correction = std::sqrt(1 - std::pow(o.momentum2, t)) / (1 - std::pow(o.momentum, t));
  float rate = static_cast<float>(step.rate * correction), delta = static_cast<float>(o.delta);
  float beta1 = static_cast<float>(o.momentum), beta2 = static_cast<float>(o.momentum2);
  float rest1 = static_cast<float>(1 - o.momentum), rest2 = static_cast<float>(1 - o.momentum2);
  return regularize_and_update<2>(o, a, step, [=](float& w, float g, float& m, float& v) {
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    w -= rate * m / (std::sqrt(v) + delta);
  });
}

}  // namespace

int history_count(UpdateOptions::Solver solver) {
  return solver == UpdateOptions::Solver::adam || solver == UpdateOptions::Solver::adadelta ? 2 : 1;
}

bool update_parameter(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step) {
  using Solver = UpdateOptions::Solver;
  const float rate = static_cast<float>(step.rate), delta = static_cast<float>(o.delta);
  const float momentum = static_cast<float>(o.momentum);
  switch (o.solver) {
    case Solver::sgd:
      return update_momentum(o, a, step, step.rate);
    case Solver::lars:
      return update_momentum(o, a, step, step.layer_wise ? layer_wise_rate(o, a, step) : step.rate);
    case Solver::nesterov:
      return regularize_and_update<1>(o, a, step, [=](float& w, float g, float& h, float&) {
        float before = h;
        h = rate * g + momentum * h;
        w -= (1 + momentum) * h - momentum * before;
      });
    case Solver::adagrad:
      return regularize_and_update<1>(o, a, step, [=](float& w, float g, float& h, float&) {
        h += g * g;
        w -= rate * g / (std::sqrt(h) + delta);
      });
    case Solver::rmsprop: {
      float kept = static_cast<float>(o.rms_decay), rest = static_cast<float>(1 - o.rms_decay);
      return regularize_and_update<1>(o, a, step, [=](float& w, float g, float& h, float&) {
        h = kept * h + rest * g * g;
        w -= rate * g / (std::sqrt(h) + delta);
      });
    }
    case Solver::adadelta: {
      float rest = static_cast<float>(1 - o.momentum);
      return regularize_and_update<2>(o, a, step, [=](float& w, float g, float& h, float& h2) {
        h = momentum * h + rest * g * g;
        float change = g * std::sqrt((h2 + delta) / (h + delta));
        h2 = momentum * h2 + rest * change * change;
        w -= rate * change;
      });
    }
    case Solver::adam:
      return update_adam(o, a, step);
  }
  throw InternalError("unknown solver");
}

}  // namespace cortado
