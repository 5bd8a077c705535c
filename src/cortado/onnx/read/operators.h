#pragma once

#include <span>
#include <string_view>

#include "cortado/onnx/read/node.h"

namespace cortado::onnx {

// An operator of ONNX: how a node of it becomes layers of the net, or why it is left out.
struct Operator {
  std::string_view name;
  void (*read)(Node& node) = nullptr;  // null: left out
  std::string_view refusal{};          // why, or what to use instead
};

// The operator of that name. Throws UserError: it is left out, or unknown.
const Operator& operator_named(const std::string& type);
// The names of those that are read, and of those that are left out with a reason, in alphabetical order.
std::vector<std::string_view> read_operators();
std::vector<std::string_view> refused_operators();

// All operators, by family; each has a file of the same name.
std::span<const Operator> convolution_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> pad_operators();
std::span<const Operator> product_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> pointwise_operators();
std::span<const Operator> arithmetic_operators();
std::span<const Operator> view_operators();
std::span<const Operator> part_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> resize_operators();

}  // namespace cortado::onnx
