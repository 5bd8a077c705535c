#include "cortado/kernels/cudnn/graph.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace cortado::cudnn {
namespace {

cudnnDataType_t data_type(ElementType type) {
  return type == ElementType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

std::vector<int64_t> channels_last(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size());
  strides[1] = 1;
  int64_t step = extents[1];
  for (size_t axis = extents.size() - 1; axis > 1; --axis) {
    strides[axis] = step;
    step *= extents[axis];
  }
  strides[0] = step;
  return strides;
}

// What addresses of a tensor are multiples of. A pass may begin at any sample; parameters begin at their
// first element.
int64_t alignment(int64_t id, const std::vector<int64_t>& strides, ElementType type) {
  constexpr int64_t most = 16;  // bytes that one thread loads at a time
  const int64_t sample = bytes_of(strides[0], type).count;
  return id == id_w || id == id_bias ? most : std::min(most, sample & -sample);
}

Descriptor tensor(int64_t id, const std::vector<int64_t>& extents, ElementType type,
                  bool is_virtual = false) {
  const std::vector<int64_t> strides = channels_last(extents);
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(type))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment(id, strides, type))
      .set_all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, extents)
      .set_all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .finalize("a tensor is described");
  return made;
}

Descriptor window(const Convolution& of) {
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(of.stride.size()))
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, of.dilation)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, of.stride)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, of.before)
      .set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, of.after)
      .finalize("a convolution is described");
  return made;
}

// y = function(a), or of a and b.
Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& a, const std::optional<Descriptor>& b,
                     const Descriptor& y) {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize("a function is described");
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.finalize("a function becomes an operation");
  return operation;
}

// cuDNN's names of what an operation of each pass reads and writes.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};
PassNames names_of(Pass pass) {
  switch (pass) {
    case Pass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case Pass::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

Descriptor products(const GraphOf& of, const Descriptor& x, const Descriptor& w, const Descriptor& y) {
  const PassNames names = names_of(of.pass);
  Descriptor operation(names.operation);
  operation.set(names.window, window(of.convolution))
      .set(names.x, x)
      .set(names.w, w)
      .set(names.y, y)
      .set(names.alpha, 1.0F)
      .set(names.beta, 0.0F)
      .finalize("a convolution becomes an operation");
  return operation;
}

// The forward pass with what comes after its products: sums stay f32 until the last function.
std::vector<Descriptor> fused_operations(const GraphOf& of, const Descriptor& x, const Descriptor& w) {
  const std::vector<int64_t>& extents = of.convolution.y;
  int64_t next_id = first_virtual_id;
  const auto between = [&] { return tensor(next_id++, extents, ElementType::f32, true); };
  const Descriptor result = tensor(id_y, extents, of.convolution.type);
  Descriptor sum = between();
  std::vector<Descriptor> operations{products(of, x, w, sum)};
  if (of.bias) {
    std::vector<int64_t> one(extents.size(), 1);
    one[1] = extents[1];
    const Descriptor with_bias = of.relu ? between() : result;
    operations.push_back(
        pointwise(CUDNN_POINTWISE_ADD, sum, tensor(id_bias, one, ElementType::f32), with_bias));
    sum = with_bias;
  }
  if (of.relu) {
    const Descriptor zero = between();
    operations.push_back(pointwise(CUDNN_POINTWISE_SUB, sum, sum, zero));
    operations.push_back(pointwise(CUDNN_POINTWISE_MAX, sum, zero, result));
  }
  return operations;
}

std::vector<Descriptor> operations_of(const GraphOf& of) {
  const Convolution& c = of.convolution;
  const Descriptor x = tensor(id_x, c.x, c.type), w = tensor(id_w, c.w, c.type);
  if (of.bias || of.relu) return fused_operations(of, x, w);
  return {products(of, x, w, tensor(id_y, c.y, c.type))};
}

}  // namespace

std::string GraphOf::text() const {
  const Convolution& c = convolution;
  return fmt::format("{} {} {} x {} w {} y {} stride {} dilation {} before {} after {} bias {} relu {}",
                     static_cast<int>(pass), name_of(c.type), c.tf32, c.x, c.w, c.y, c.stride, c.dilation,
                     c.before, c.after, bias, relu);
}

Descriptor graph(const GraphOf& of, cudnnHandle_t handle) {
  Descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made.set_parts(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_of(of));
  if (handle) made.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  made.finalize("operations become a graph");
  return made;
}

}  // namespace cortado::cudnn
