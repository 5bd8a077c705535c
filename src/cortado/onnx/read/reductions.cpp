#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

struct ReducedAxes {
  std::vector<bool> of;  // per axis of the input
  Shape output;          // with keepdims
  int first = 0;
  bool trailing = true;  // all axes from `first` on
};

ReducedAxes reduced_axes(const Node& node, const Shape& shape) {
  node.check_inputs(1, 2);
  const std::optional<std::vector<int64_t>> given = integers_of(node, 1, "axes");
  const bool none_is_all = node.attributes.integer("noop_with_empty_axes", 0) == 0;
  const bool all = !given || given->empty();
  ReducedAxes axes;
  axes.of.assign(static_cast<size_t>(shape.rank()), all && none_is_all);
  if (!all)
    for (const int64_t axis : *given) axes.of[static_cast<size_t>(axis_of(axis, shape.rank()))] = true;
  const bool keep = node.attributes.integer("keepdims", 1) != 0;
  axes.first = shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool reduced = axes.of[static_cast<size_t>(axis)];
    if (reduced) axes.first = std::min(axes.first, axis);
    if (!reduced && axis > axes.first) axes.trailing = false;
    if (!reduced || keep) axes.output.append(reduced ? 1 : shape[axis]);
  }
  return axes;
}

Value global_pooled(Node& node, const Value& input, caffe::PoolingParameter::PoolMethod method) {
  caffe::LayerParameter layer = layer_of_type("Pooling");
  layer.mutable_pooling_param()->set_pool(method);
  layer.mutable_pooling_param()->set_global_pooling(true);
  return node.layer(std::move(layer), input);
}

void give_reduced(Node& node, caffe::ReductionParameter::ReductionOp operation) {
  const Value& input = node.activation(0);
  const Shape shape = input.seen();
  const ReducedAxes axes = reduced_axes(node, shape);
  if (axes.first == shape.rank()) throw UserError("it reduces no axis; leave the node out");
  if (!axes.trailing)
    throw UserError(
        fmt::format("it reduces axis {} of a tensor of shape {}, but not all after it; Reduction layers take "
                    "the last axes",
                    axes.first, shape.text()));
  Value output;
  if (operation == caffe::ReductionParameter::MEAN && axes.first == 2 && shape.rank() <= 5) {
    output = global_pooled(node, input, caffe::PoolingParameter::AVE);
  } else {
    caffe::LayerParameter layer = layer_of_type("Reduction");
    layer.mutable_reduction_param()->set_axis(axes.first);
    layer.mutable_reduction_param()->set_operation(operation);
    output = node.layer(std::move(layer), input);
  }
  output.shape = axes.output;
  node.give(std::move(output));
}

void read_reduce_mean(Node& node) { give_reduced(node, caffe::ReductionParameter::MEAN); }
void read_reduce_sum(Node& node) { give_reduced(node, caffe::ReductionParameter::SUM); }
void read_reduce_l1(Node& node) { give_reduced(node, caffe::ReductionParameter::ASUM); }
void read_reduce_sum_square(Node& node) { give_reduced(node, caffe::ReductionParameter::SUMSQ); }

void read_reduce_max(Node& node) {
  const Value& input = node.activation(0);
  const ReducedAxes axes = reduced_axes(node, input.seen());
  if (!axes.trailing || axes.first != 2 || input.seen().rank() < 3)
    throw UserError("it takes maxima of other axes than all spatial ones; use MaxPool");
  Value output = global_pooled(node, input, caffe::PoolingParameter::MAX);
  output.shape = axes.output;
  node.give(std::move(output));
}

}  // namespace

std::span<const Operator> reduction_operators() {
  static constexpr Operator operators[] = {
      {"ReduceMean", read_reduce_mean},
      {"ReduceSum", read_reduce_sum},
      {"ReduceL1", read_reduce_l1},
      {"ReduceSumSquare", read_reduce_sum_square},
      {"ReduceMax", read_reduce_max},
      {"ReduceMin", nullptr, "Caffe has no such layer; use ReduceMax of the negative"},
      {"ReduceProd", nullptr, "Caffe has no such layer"},
      {"ReduceL2", nullptr, "use ReduceSumSquare and Sqrt"},
      {"ReduceLogSum", nullptr, "use ReduceSum and Log"},
      {"ReduceLogSumExp", nullptr, "use Exp, ReduceSum and Log"},
  };
  return operators;
}

}  // namespace cortado::onnx
