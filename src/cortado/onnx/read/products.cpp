#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

// The weight of an InnerProduct: a row for each output. `rows`: the matrix has them already.
Blob product_weight(const Constant& matrix, bool rows, double factor) {
  if (matrix.shape.rank() != 2 || matrix.size() == 0)
    throw UserError(fmt::format("its weight is of shape {}; it must be a matrix", matrix.shape.text()));
  const int64_t outputs = matrix.shape[rows ? 0 : 1], summed = matrix.shape[rows ? 1 : 0];
  Blob blob = blob_of(matrix, {outputs, summed});
  if (!rows) {
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t k = 0; k < summed; ++k)
        blob.values[static_cast<size_t>(o * summed + k)] =
            matrix.floats[static_cast<size_t>(k * outputs + o)];
  }
  if (factor != 1)
    for (float& value : blob.values) value = static_cast<float>(value * factor);
  return blob;
}

// A value per output of the bias of a Gemm, which may be one number for all.
Blob product_bias(const Constant& bias, int64_t outputs, double factor) {
  const int rank = bias.shape.rank();
  const bool is_row = rank <= 1 || (rank == 2 && bias.shape[0] == 1);
  if (!is_row || (bias.size() != outputs && bias.size() != 1) || bias.whole)
    throw UserError(fmt::format("C is of shape {} for {} outputs; an InnerProduct has one bias per output",
                                bias.shape.text(), outputs));
  Blob blob{{outputs}, std::vector<float>(static_cast<size_t>(outputs))};
  for (size_t o = 0; o < blob.values.size(); ++o)
    blob.values[o] = static_cast<float>(factor * bias.floats[bias.size() == 1 ? 0 : o]);
  return blob;
}

// An InnerProduct sums over all axes from its axis on, so that it needs no Flatten before it.
Value with_samples(const Value& input) {
  Value value = input;
  const bool is_flat = value.pads.empty() && value.shape.rank() == 2 && value.blob_shape.rank() > 2 &&
                       value.blob_shape[0] == value.shape[0];
  if (is_flat) value.shape = value.blob_shape;
  return value;
}

Value inner_product(Node& node, const Value& input, std::vector<Blob> blobs) {
  const int axis = input.shape.rank() - 1;
  if (axis < 0 || input.seen()[axis] != blobs[0].shape[1])
    throw UserError(fmt::format("its input is of shape {}, its weight sums over {}", input.seen().text(),
                                blobs[0].shape[1]));
  caffe::LayerParameter layer = layer_of_type("InnerProduct");
  caffe::InnerProductParameter& options = *layer.mutable_inner_product_param();
  options.set_num_output(static_cast<uint32_t>(blobs[0].shape[0]));
  if (axis != 1) options.set_axis(axis);
  if (blobs.size() == 1) options.set_bias_term(false);
  options.mutable_weight_filler()->set_type("msra");
  return node.layer(std::move(layer), axis == 1 ? with_samples(input) : input, std::move(blobs));
}

void read_gemm(Node& node) {
  node.check_inputs(2, 3);
  if (node.attributes.integer("transA", 0) != 0)
    throw UserError("transA is 1: its input is transposed, which no layer does; export with transA 0");
  const bool rows = node.attributes.integer("transB", 0) != 0;
  const Value& input = node.activation(0);
  if (input.shape.rank() != 2)
    throw UserError(fmt::format("its input is of shape {}; it must be a matrix", input.shape.text()));
  std::vector<Blob> blobs{product_weight(node.constant(1), rows, node.attributes.number("alpha", 1))};
  const double beta = node.attributes.number("beta", 1);
  if (node.has(2)) blobs.push_back(product_bias(node.constant(2), blobs[0].shape[0], beta));
  node.give(inner_product(node, input, std::move(blobs)));
}

void read_mat_mul(Node& node) {
  node.check_inputs(2, 2);
  node.give(inner_product(node, node.activation(0), {product_weight(node.constant(1), false, 1)}));
}

}  // namespace

std::span<const Operator> product_operators() {
  static constexpr Operator operators[] = {
      {"Gemm", read_gemm},
      {"MatMul", read_mat_mul},
      {"Einsum", nullptr, "Caffe has no layer for it; use Gemm or Conv"},
      {"MatMulInteger", nullptr, "quantized nets are not read; export the net with float weights"},
      {"QLinearMatMul", nullptr, "quantized nets are not read; export the net with float weights"},
      {"QLinearConv", nullptr, "quantized nets are not read; export the net with float weights"},
      {"ConvInteger", nullptr, "quantized nets are not read; export the net with float weights"},
  };
  return operators;
}

}  // namespace cortado::onnx
