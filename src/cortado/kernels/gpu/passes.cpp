#include "cortado/kernels/gpu/passes.h"

#include <string>
#include <type_traits>
#include <vector>

#include "cortado/kernels/element.h"
#include "cortado/kernels/gpu/elements.h"
#include "cortado/kernels/gpu/grid.h"
#include "cortado/kernels/gpu/pointers.h"
#include "cortado/kernels/gpu/sums.h"
#include "cortado/kernels/gpu/values.h"

namespace cortado::gpu {
namespace {

template <typename E>
struct SumOfTerms {
  Pointers<const E> terms;
  CORTADO_EVERYWHERE E operator()(int64_t i) const {
    float sum = value_of(terms.of[0][i]);
    for (int k = 1; k < terms.count; ++k) sum += value_of(terms.of[k][i]);
    return rounded<E>(sum);
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

struct SquareTerm {
  const float* x;
  int64_t columns, count;
  CORTADO_EVERYWHERE double operator()(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return i < count ? static_cast<double>(x[i]) * x[i] : 0;
  }
};

// A layer's rate of LARS is a sum that only the device knows.
struct LarsElement {
  update_rules::Gradient gradient_of;
  UpdateArguments a;
  double rate, eta, decay, gradient_scale;
  float momentum;
  const double* squares;  // of the weights as they were, and of the gradient
  float* not_finite;
  CORTADO_EVERYWHERE void operator()(int64_t i) const {
    const double own =
        update_rules::layer_wise_rate(rate, eta, decay, gradient_scale, squares[0], squares[1]);
    UpdateElement<update_rules::Momentum, 1>{
        {static_cast<float>(own), momentum}, gradient_of, a, not_finite}(i);
  }
};

constexpr int64_t square_columns = 128;  // neighbouring threads read neighbouring elements

struct FoldColumns {
  const double* columns;
  double* total;
  CORTADO_EVERYWHERE void operator()(int64_t) const {
    double sum = 0;
    for (int64_t column = 0; column < square_columns; ++column) sum += columns[column];
    *total = sum;
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
      const int64_t at = divide(i, places.extent[axis]);
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

Bytes sum_of_squares_scratch() {
  return most_sum_scratch(square_columns) + Bytes{square_columns * int64_t{sizeof(double)}};
}

void sum_of_squares(void* stream, const float* x, int64_t count, std::byte* scratch, double* total) {
  const int64_t rows = (count + square_columns - 1) / square_columns;
  auto* columns = reinterpret_cast<double*>(scratch + most_sum_scratch(square_columns).count);
  sum_rows(stream, rows, square_columns, scratch, columns, SquareTerm{x, square_columns, count});
  for_each(stream, 1, FoldColumns{columns, total});
}

Bytes update_scratch() { return sum_of_squares_scratch() + Bytes{2 * int64_t{sizeof(double)}}; }

template <typename E>
void sum(void* stream, E* target, std::type_identity_t<std::span<const E* const>> terms, int64_t count) {
  if (terms.size() > most_pointers)
    throw UserError("a GPU does not add up " + std::to_string(terms.size()) +
                    " gradients of one tensor, only " +
                    std::to_string(most_pointers));  // nvcc does not take fmt's checked formats
  if (terms.size() == 2) return for_each_value(stream, count, target, SumOfTwo<E>{terms[0], terms[1]});
  const std::vector<const E*> all(terms.begin(), terms.end());
  for_each_value(stream, count, target, SumOfTerms<E>{pointers<const E>(all)});
}
template void sum<float>(void*, float*, std::span<const float* const>, int64_t);
template void sum<bf16>(void*, bf16*, std::span<const bf16* const>, int64_t);

void copy(void* stream, float* target, const float* source, int64_t count) {
  for_each_value(stream, count, target, CopyValue<float>{source});
}

namespace {

void update_by_lars(void* stream, const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step,
                    float* not_finite, std::byte* scratch) {
  auto* squares = reinterpret_cast<double*>(scratch + sum_of_squares_scratch().count);
  sum_of_squares(stream, a.weights, a.elements, scratch, squares);
  sum_of_squares(stream, a.gradient, a.elements, scratch, squares + 1);
  for_each(stream, a.elements,
           LarsElement{update_rules::gradient_of(o, step), a, step.rate, o.lars_eta, step.decay,
                       step.gradient_scale, static_cast<float>(o.momentum), squares, not_finite});
}

}  // namespace

void update_parameter(void* stream, const UpdateOptions& o, const UpdateArguments& a, const UpdateStep& step,
                      float* not_finite, std::byte* scratch) {
  const bool layer_wise = o.solver == UpdateOptions::Solver::lars && step.layer_wise;
  if (layer_wise && !step.squares) return update_by_lars(stream, o, a, step, not_finite, scratch);
  const double rate =
      layer_wise ? update_rules::layer_wise_rate(step.rate, o.lars_eta, step.decay, step.gradient_scale,
                                                 step.squares->weights, step.squares->gradient)
                 : step.rate;
  update_rules::with_rule(o, step, rate, [&](const auto& rule, auto histories) {
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
