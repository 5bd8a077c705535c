#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cortado/onnx/import.h"

#include "tests/net/net_testing.h"

namespace cortado::testing {

// Graphs written down node by node.
class ModelBuilder {
 public:
  ModelBuilder() {
    model.add_opset_import()->set_version(13);
    model.mutable_graph()->set_name("test");
  }
  ModelBuilder& input(const std::string& name, const std::vector<int64_t>& extents,
                      int type = onnx::TensorProto::FLOAT) {
    set(*graph().add_input(), name, extents, type);
    return *this;
  }
  ModelBuilder& output(const std::string& name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs) {
    onnx::NodeProto& node = *graph().add_node();
    node.set_op_type(type);
    node.set_name(type + "_1");
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    return node;
  }
  onnx::TensorProto& floats(const std::string& name, const std::vector<int64_t>& extents,
                            const std::vector<float>& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t extent : extents) tensor.add_dims(extent);
    for (float value : values) tensor.add_float_data(value);
    return tensor;
  }
  onnx::TensorProto& integers(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    tensor.add_dims(static_cast<int64_t>(values.size()));
    for (int64_t value : values) tensor.add_int64_data(value);
    return tensor;
  }
  static void attribute(onnx::NodeProto& node, const std::string& name, int64_t value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }

  onnx::GraphProto& graph() { return *model.mutable_graph(); }
  onnx::ImportedNet read(const onnx::ImportOptions& options = {}) const {
    return onnx::import_model(model, "model.onnx", options);
  }
  std::string error(const onnx::ImportOptions& options = {}) const {
    return error_of([&] { read(options); });
  }

  onnx::ModelProto model;

 private:
  static void set(onnx::ValueInfoProto& value, const std::string& name, const std::vector<int64_t>& extents,
                  int type) {
    value.set_name(name);
    value.mutable_type()->mutable_tensor_type()->set_elem_type(type);
    auto& shape = *value.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int64_t extent : extents) {
      auto& dimension = *shape.add_dim();
      if (extent > 0) dimension.set_dim_value(extent);
      if (extent == 0) dimension.set_dim_param("N");
    }
  }
};

}  // namespace cortado::testing
