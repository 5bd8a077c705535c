#include "cortado/kernels/update.h"

#include <atomic>
#include <cmath>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/arrays.h"

namespace cortado {
namespace {

// Calls rule(w, g, h0, h1) for each element, g scaled and regularized; the rule changes w and the history.
// Whether they are finite is found in the same pass: 0 times a number is 0, or not a number.
template <bool L1, int Histories, typename Rule>
bool update_elements(const UpdateArguments& a, const update_rules::Gradient& gradient, const Rule& rule) {
  std::atomic<bool> finite = true;
  parallel_ranges(a.elements, [&](int64_t begin, int64_t end) {
    // Copies, which no element can change: else the loop is not vectorized.
    const update_rules::Gradient gradient_of{gradient.scale, gradient.decay, L1};
    const Rule change = rule;
    float zero = 0;
    float* __restrict weights = a.weights;
    const float* __restrict gradients = a.gradient;
    float* __restrict first = a.history[0];
    float* __restrict second = a.history[1];
#pragma omp simd reduction(+ : zero)
    for (int64_t i = begin; i < end; ++i) {
      float w = weights[i], h0 = first[i], h1 = Histories > 1 ? second[i] : 0.0f;
      change(w, gradient_of(w, gradients[i]), h0, h1);
      weights[i] = w;
      first[i] = h0;
      if constexpr (Histories > 1) second[i] = h1;
      zero += 0 * w + 0 * h0 + (Histories > 1 ? 0 * h1 : 0.0f);
    }
    if (zero != 0) finite = false;
  });
  return finite;
}

SquareSums squares_of(const UpdateArguments& a) {
  return {arrays::sum_of_squares(a.weights, a.elements), arrays::sum_of_squares(a.gradient, a.elements)};
}

double layer_wise_rate(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step) {
  const SquareSums squares = step.squares ? *step.squares : squares_of(a);
  return update_rules::layer_wise_rate(step.rate, o.lars_eta, step.decay, step.gradient_scale,
                                       squares.weights, squares.gradient);
}

}  // namespace

int history_count(UpdateOptions::Solver solver) {
  UpdateOptions options;
  options.solver = solver;
  return update_rules::with_rule(options, {}, 0, [](const auto&, auto histories) { return int{histories}; });
}

bool update_parameter(const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step) {
  const bool layer_wise = o.solver == UpdateOptions::Solver::lars && step.layer_wise;
  const update_rules::Gradient gradient = update_rules::gradient_of(o, step);
  return update_rules::with_rule(o, step, layer_wise ? layer_wise_rate(o, a, step) : step.rate,
                                 [&](const auto& rule, auto histories) {
                                   return gradient.l1 ? update_elements<true, histories>(a, gradient, rule)
                                                      : update_elements<false, histories>(a, gradient, rule);
                                 });
}

}  // namespace cortado
