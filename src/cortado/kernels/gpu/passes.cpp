#include "cortado/kernels/gpu/passes.h"

#include <string>
#include <type_traits>
#include <vector>

#include "cortado/kernels/element.h"
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/grid.h"
#include "cortado/kernels/gpu/pointers.h"

namespace cortado::gpu {
namespace {

struct AddElement {
  Pointers<const float> terms;
  float* target;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    float sum = terms.of[0][i];
    for (int k = 1; k < terms.count; ++k) sum += terms.of[k][i];
    target[i] = sum;
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

template <typename From, typename To, bool adds>
struct BoxElement {
  BoxPlaces places;
  const From* from;
  To* to;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    int64_t source = 0, target = 0;
    for (int axis = places.axes - 1; axis >= 0; --axis) {
      const int64_t at = i % places.extent[axis];
      i /= places.extent[axis];
      source += at * places.from[axis];
      target += at * places.to[axis];
    }
    if constexpr (adds)
      assign(to[target], widened(to[target]) + widened(from[source]));
    else if constexpr (std::is_same_v<From, To>)
      to[target] = from[source];  // with all its bits
    else
      assign(to[target], widened(from[source]));
  }
};

template <typename E>
struct ZeroElement {
  E* memory;
  CORTADO_EVERYWHERE void operator()(int64_t i) const { memory[i] = E{}; }
};

template <bool adds>
void move_box(void* stream, const BoxPlaces& places, const void* from, ElementType from_type, void* to,
              ElementType to_type) {
  with_element_type(from_type, [&]<typename From>() {
    with_element_type(to_type, [&]<typename To>() {
      for_each(stream, places.elements,
               BoxElement<From, To, adds>{places, static_cast<const From*>(from), static_cast<To*>(to)});
    });
  });
}

}  // namespace

void sum(void* stream, float* target, std::span<const float* const> terms, int64_t count) {
  if (terms.size() > most_pointers)
    throw UserError("a GPU does not add up " + std::to_string(terms.size()) +
                    " gradients of one tensor, only " +
                    std::to_string(most_pointers));  // nvcc does not take fmt's checked formats
  const std::vector<const float*> all(terms.begin(), terms.end());
  for_each(stream, count, AddElement{pointers<const float>(all), target});
}

void copy(void* stream, float* target, const float* source, int64_t count) {
  for_each(stream, count, CopyElement{source, target});
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

void copy_box(void* stream, const BoxPlaces& places, const void* from, ElementType from_type, void* to,
              ElementType to_type) {
  move_box<false>(stream, places, from, from_type, to, to_type);
}

void add_box(void* stream, const BoxPlaces& places, const void* from, ElementType from_type, void* to,
             ElementType to_type) {
  move_box<true>(stream, places, from, from_type, to, to_type);
}

void zero(void* stream, void* memory, int64_t elements, ElementType type) {
  with_element_type(
      type, [&]<typename E>() { for_each(stream, elements, ZeroElement<E>{static_cast<E*>(memory)}); });
}

}  // namespace cortado::gpu
