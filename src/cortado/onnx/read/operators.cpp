#include "cortado/onnx/read/operators.h"

#include <fmt/format.h>
#include <map>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"

namespace cortado::onnx {
namespace {

constexpr std::string_view no_control =
    "the layers of a net do not depend on values; export the branch that is taken";
constexpr std::string_view no_recurrence =
    "recurrent operators are not read; give a net with LSTM or RNN layers as a prototxt";
constexpr std::string_view no_integers = "quantized nets are not read; export the net with float weights";

std::span<const Operator> other_operators() {
  static constexpr Operator operators[] = {
      {"If", nullptr, no_control},
      {"Loop", nullptr, no_control},
      {"Scan", nullptr, no_control},
      {"LSTM", nullptr, no_recurrence},
      {"GRU", nullptr, no_recurrence},
      {"RNN", nullptr, no_recurrence},
      {"QuantizeLinear", nullptr, no_integers},
      {"DequantizeLinear", nullptr, no_integers},
      {"DynamicQuantizeLinear", nullptr, no_integers},
  };
  return operators;
}

const std::map<std::string_view, Operator>& operators_by_name() {
  static const std::map<std::string_view, Operator> table = [] {
    std::map<std::string_view, Operator> operators;
    for (const auto family : {convolution_operators, pooling_operators, pad_operators, product_operators,
                              norm_operators, pointwise_operators, arithmetic_operators, view_operators,
                              part_operators, reduction_operators, resize_operators, other_operators})
      for (const Operator& one : family()) operators[one.name] = one;
    return operators;
  }();
  return table;
}

}  // namespace

const Operator& operator_named(const std::string& type) {
  const auto found = operators_by_name().find(type);
  if (found != operators_by_name().end()) {
    if (found->second.read) return found->second;
    throw UserError(fmt::format("this operator is not read: {}", found->second.refusal));
  }
  std::vector<std::string_view> known;
  for (const auto& [name, one] : operators_by_name()) known.push_back(name);
  throw UserError(fmt::format("this operator is not read{}; docs/reference/onnx.md lists those that are",
                              type.size() < 100 ? did_you_mean(type, known) : ""));
}

std::vector<std::string_view> read_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, one] : operators_by_name())
    if (one.read) names.push_back(name);
  return names;
}

std::vector<std::string_view> refused_operators() {
  std::vector<std::string_view> names;
  for (const auto& [name, one] : operators_by_name())
    if (!one.read) names.push_back(name);
  return names;
}

}  // namespace cortado::onnx
