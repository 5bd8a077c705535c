#include "cortado/onnx/read/fold.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/onnx/read/broadcast.h"
#include "cortado/onnx/read/rearrange.h"

namespace cortado::onnx {
namespace {

using Folded = std::vector<ConstantPtr>;

template <typename Value, typename Function>
std::vector<Value> map_two(const Constant& a, const Constant& b, const Shape& shape, Function function) {
  const std::vector<int64_t> from_a = broadcast_sources(a.shape, shape),
                             from_b = broadcast_sources(b.shape, shape);
  std::vector<Value> values;
  values.reserve(from_a.size());
  for (size_t i = 0; i < from_a.size(); ++i) values.push_back(function(from_a[i], from_b[i]));
  return values;
}

// Integers wrap around, as in two's complement.
int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

int64_t whole_result(const std::string& type, int64_t x, int64_t y) {
  const auto a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  if (type == "Add") return wrapped(a + b);
  if (type == "Sub") return wrapped(a - b);
  if (type == "Mul") return wrapped(a * b);
  if (type == "Min") return std::min(x, y);
  if (type == "Max") return std::max(x, y);
  if (type == "Equal") return x == y;
  if (type == "Greater") return x > y;
  if (type == "GreaterOrEqual") return x >= y;
  if (type == "Less") return x < y;
  if (type == "LessOrEqual") return x <= y;
  if (type == "And") return x && y;
  if (type == "Or") return x || y;
  if (type == "Pow") return static_cast<int64_t>(std::clamp(std::pow(x, y), -1e18, 1e18));
  if (y == 0) throw UserError("it divides by 0");
  if (y == -1) return type == "Div" ? wrapped(0 - a) : 0;
  if (type == "Div") return x / y;
  const int64_t rest = x % y;  // Mod: the sign of the divisor
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

double float_result(const std::string& type, double x, double y) {
  if (type == "Add") return x + y;
  if (type == "Sub") return x - y;
  if (type == "Mul") return x * y;
  if (type == "Div") return x / y;
  if (type == "Min") return std::min(x, y);
  if (type == "Max") return std::max(x, y);
  if (type == "Pow") return std::pow(x, y);
  return std::fmod(x, y);
}

bool compares(const std::string& type) {
  return type == "Equal" || type.starts_with("Greater") || type.starts_with("Less");
}

double compared(const std::string& type, double x, double y) {
  if (type == "Equal") return x == y;
  if (type == "Greater") return x > y;
  if (type == "GreaterOrEqual") return x >= y;
  return type == "Less" ? x < y : x <= y;
}

Folded fold_two(const Node& node) {
  node.check_inputs(2, 2);
  const Constant &a = node.constant(0), &b = node.constant(1);
  const Shape shape = broadcast_shape(a.shape, b.shape);
  const std::string& type = node.type();
  if (a.whole && b.whole)
    return {constant_of(shape, map_two<int64_t>(a, b, shape, [&](int64_t i, int64_t j) {
                          return whole_result(type, a.integers[static_cast<size_t>(i)],
                                              b.integers[static_cast<size_t>(j)]);
                        }))};
  if (compares(type))
    return {constant_of(shape, map_two<int64_t>(a, b, shape, [&](int64_t i, int64_t j) {
                          return static_cast<int64_t>(compared(type, a.number(i), b.number(j)));
                        }))};
  return {constant_of(shape, map_two<float>(a, b, shape, [&](int64_t i, int64_t j) {
                        return static_cast<float>(float_result(type, a.number(i), b.number(j)));
                      }))};
}

double function_of(const std::string& type, double x) {
  if (type == "Neg") return -x;
  if (type == "Abs") return std::abs(x);
  if (type == "Sqrt") return std::sqrt(x);
  if (type == "Exp") return std::exp(x);
  if (type == "Log") return std::log(x);
  if (type == "Floor") return std::floor(x);
  if (type == "Ceil") return std::ceil(x);
  if (type == "Round") return std::nearbyint(x);
  if (type == "Reciprocal") return 1 / x;
  return x == 0;  // Not
}

Folded fold_one(const Node& node) {
  node.check_inputs(1, 1);
  const Constant& x = node.constant(0);
  if (x.whole) {
    std::vector<int64_t> values = x.integers;
    for (int64_t& value : values) {
      if (node.type() == "Not") value = value == 0;
      if (node.type() == "Neg" || (node.type() == "Abs" && value < 0))
        value = wrapped(0 - static_cast<uint64_t>(value));
    }
    return {constant_of(x.shape, std::move(values))};
  }
  std::vector<float> values;
  for (const float value : x.floats) values.push_back(static_cast<float>(function_of(node.type(), value)));
  return {constant_of(x.shape, std::move(values))};
}

int64_t to_whole(double value) {
  constexpr double most = 9e18;
  return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -most, most));
}

Folded fold_cast(const Node& node) {
  node.check_inputs(1, 1);
  const Constant& x = node.constant(0);
  const auto type = static_cast<int>(node.attributes.integer("to", TensorProto::UNDEFINED));
  const bool floats = type == TensorProto::FLOAT || type == TensorProto::DOUBLE ||
                      type == TensorProto::FLOAT16 || type == TensorProto::BFLOAT16;
  if (type == TensorProto::STRING || !TensorProto::DataType_IsValid(type))
    throw UserError(fmt::format("it casts to {}, which is not read", type_name(type)));
  if (floats == !x.whole) return {std::make_shared<Constant>(x)};
  if (floats) return {constant_of(x.shape, std::vector<float>(x.integers.begin(), x.integers.end()))};
  std::vector<int64_t> values;
  for (const float value : x.floats)
    values.push_back(type == TensorProto::BOOL ? value != 0 : to_whole(value));
  return {constant_of(x.shape, std::move(values))};
}

Folded fold_where(const Node& node) {
  node.check_inputs(3, 3);
  const Constant &condition = node.constant(0), &a = node.constant(1), &b = node.constant(2);
  if (a.whole != b.whole) throw UserError("its values are of different types");
  const Shape shape = broadcast_shape(condition.shape, broadcast_shape(a.shape, b.shape));
  const std::vector<int64_t> from = broadcast_sources(condition.shape, shape);
  const ConstantPtr x = rearranged(a, shape, broadcast_sources(a.shape, shape));
  const ConstantPtr y = rearranged(b, shape, broadcast_sources(b.shape, shape));
  Constant result = *y;
  for (size_t i = 0; i < from.size(); ++i) {
    if (condition.number(from[i]) == 0) continue;
    if (a.whole) {
      result.integers[i] = x->integers[i];
    } else {
      result.floats[i] = x->floats[i];
    }
  }
  return {std::make_shared<Constant>(std::move(result))};
}

Folded fold_constant_of_shape(const Node& node) {
  node.check_inputs(1, 1);
  const std::vector<int64_t> extents = node.integers(0);
  const Shape shape{std::span(extents)};
  check_computed(shape, 0);
  const auto size = static_cast<size_t>(shape.size());
  const TensorProto* given = node.attributes.tensor("value");
  if (!given) return {constant_of(shape, std::vector<float>(size))};
  const ConstantPtr value = read_constant(*given, "");
  if (value->size() != 1) throw UserError("its value must be one number");
  if (value->whole) return {constant_of(shape, std::vector<int64_t>(size, value->integers[0]))};
  return {constant_of(shape, std::vector<float>(size, value->floats[0]))};
}

Folded fold_range(const Node& node) {
  node.check_inputs(3, 3);
  const double start = node.scalar(0), limit = node.scalar(1), delta = node.scalar(2);
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  constexpr double most = 1 << 24;
  if (!(count <= most))
    throw UserError(fmt::format("it counts from {:g} to {:g} by {:g}", start, limit, delta));
  const bool whole = node.constant(0).whole;
  std::vector<int64_t> integers;
  std::vector<float> floats;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const double value = start + static_cast<double>(i) * delta;
    whole ? integers.push_back(to_whole(value)) : floats.push_back(static_cast<float>(value));
  }
  const Shape shape{static_cast<int64_t>(count)};
  return {whole ? constant_of(shape, std::move(integers)) : constant_of(shape, std::move(floats))};
}

// Sums and products over all elements: what exporters compute of shapes.
Folded fold_reduce(const Node& node) {
  const Constant& x = node.constant(0);
  const std::optional<std::vector<int64_t>> axes = integers_of(node, 1, "axes");
  node.attributes.pass_over("noop_with_empty_axes");
  if (x.shape.rank() > 1 || !x.whole) throw UserError("it reduces a constant that is no vector of integers");
  if (axes)
    for (const int64_t axis : *axes) axis_of(axis, x.shape.rank());
  uint64_t result = node.type() == "ReduceProd" ? 1 : 0;
  for (const int64_t value : x.integers)
    result = node.type() == "ReduceProd" ? result * static_cast<uint64_t>(value)
                                         : result + static_cast<uint64_t>(value);
  const bool keep = node.attributes.integer("keepdims", 1) != 0;
  return {
      constant_of(keep && x.shape.rank() == 1 ? Shape{1} : Shape{}, std::vector<int64_t>{wrapped(result)})};
}

using FoldFunction = Folded (*)(const Node&);

const std::map<std::string_view, FoldFunction>& fold_functions() {
  static const std::map<std::string_view, FoldFunction> table = [] {
    std::map<std::string_view, FoldFunction> functions{
        {"Cast", fold_cast},   {"Where", fold_where},       {"ConstantOfShape", fold_constant_of_shape},
        {"Range", fold_range}, {"ReduceProd", fold_reduce}, {"ReduceSum", fold_reduce}};
    for (const std::string_view name : {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Pow", "Equal",
                                        "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or"})
      functions[name] = fold_two;
    for (const std::string_view name :
         {"Neg", "Abs", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Round", "Reciprocal", "Not"})
      functions[name] = fold_one;
    for (const RearrangeFunction& function : rearrange_functions()) functions[function.name] = function.fold;
    return functions;
  }();
  return table;
}

}  // namespace

std::vector<ConstantPtr> fold(const Node& node) {
  const auto found = fold_functions().find(node.type());
  return found == fold_functions().end() ? Folded{} : found->second(node);
}

std::vector<std::string_view> folded_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, function] : fold_functions()) names.push_back(name);
  return names;
}

}  // namespace cortado::onnx
