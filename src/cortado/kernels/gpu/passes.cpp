#include "cortado/kernels/gpu/passes.h"

#include <string>
#include <type_traits>
#include <vector>

#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/grid.h"
#include "cortado/kernels/gpu/pointers.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado::gpu {
namespace {

template <typename E>
struct AddElement {
  Pointers<const E> terms;
  E* target;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float sum = value_of(terms.of[0][i]);
    for (int k = 1; k < terms.count; ++k) sum += value_of(terms.of[k][i]);
    target[i] = rounded<E>(sum);
  }
};

template <typename Rule, int histories>
struct UpdateElement {
  Rule rule;
  update_rules::Gradient gradient_of;
  UpdateArguments a;
  float* not_finite;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float w = a.weights[i], h0 = a.history[0][i], h1 = histories > 1 ? a.history[1][i] : 0;
    rule(w, gradient_of(w, a.gradient[i]), h0, h1);
    a.weights[i] = w;
    a.history[0][i] = h0;
    if (histories > 1) a.history[1][i] = h1;
    if (0 * w + 0 * h0 + 0 * h1 != 0) *not_finite = 1;  // all who write, write the same
  }
};

}  // namespace

template <typename E>
void sum(void* stream, E* target, std::type_identity_t<std::span<const E* const>> terms, int64_t count) {
  if (terms.size() > most_pointers)
    throw UserError("a GPU does not add up " + std::to_string(terms.size()) +
                    " gradients of one tensor, only " +
                    std::to_string(most_pointers));  // nvcc does not take fmt's checked formats
  const std::vector<const E*> all(terms.begin(), terms.end());
  for_each(stream, count, AddElement<E>{pointers<const E>(all), target});
}
template void sum<float>(void*, float*, std::span<const float* const>, int64_t);
template void sum<bf16>(void*, bf16*, std::span<const bf16* const>, int64_t);

void copy(void* stream, float* target, const float* source, int64_t count) {
  for_each(stream, count, CopyElement<float>{source, target});
}

void update_parameter(void* stream, const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step,
                      float* not_finite) {
  if (o.solver == UpdateOptions::Solver::lars)
    throw UserError("the LARS solver does not run on a GPU: its rates need norms of whole layers");
  update_rules::with_rule(o, step, step.rate, [&](const auto& rule, auto histories) {
    using Rule = std::remove_cvref_t<decltype(rule)>;
    for_each(stream, a.elements,
             UpdateElement<Rule, histories>{rule, update_rules::gradient_of(o, step), a, not_finite});
  });
}

}  // namespace cortado::gpu
