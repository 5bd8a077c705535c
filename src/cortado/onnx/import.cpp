#include "cortado/onnx/import.h"

#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"
#include "cortado/onnx/read/fold.h"
#include "cortado/onnx/read/operators.h"

namespace cortado::onnx {
namespace {

bool is_default_domain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

void check_opset(const ModelProto& model) {
  for (const OperatorSetIdProto& set : model.opset_import()) {
    if (!is_default_domain(set.domain())) continue;
    if (set.version() >= oldest_opset && set.version() <= newest_opset) return;
    throw UserError(fmt::format(
        "is of opset {}; opset {} to {} is read: export with one of them, or convert the model with "
        "onnx.version_converter",
        set.version(), oldest_opset, newest_opset));
  }
  throw UserError("names no opset; is it an ONNX model?");
}

// Whether the node is a Transpose of N, ..., C to N, C, ...
bool brings_channels_first(const NodeProto& node) {
  if (node.op_type() != "Transpose" || node.input_size() != 1 || node.attribute_size() != 1) return false;
  const auto& order = node.attribute(0).ints();
  if (order.size() < 3 || order[0] != 0 || order[1] != order.size() - 1) return false;
  for (int i = 2; i < order.size(); ++i)
    if (order[i] != i - 1) return false;
  return true;
}

// Reads a graph node by node.
class GraphReader {
 public:
  GraphReader(const GraphProto& graph, const ImportOptions& options) : graph_(graph), options_(options) {
    for (const TensorProto& tensor : graph.initializer()) initializers_[tensor.name()] = &tensor;
    count_uses();
  }

  ImportedNet read() {
    constexpr int most_outputs = 1000;
    if (graph_.output_size() > most_outputs)
      throw UserError(fmt::format("has {} outputs, more than {}", graph_.output_size(), most_outputs));
    if (graph_.output_size() == 0) throw UserError("has no outputs; the file is broken");
    read_inputs();
    for (int i = 0; i < graph_.node_size(); ++i)
      if (needed_[static_cast<size_t>(i)]) read_node(graph_.node(i));
    name_outputs();
    note_copies();
    return {std::move(net_.net()), std::move(net_.weights()), std::move(notices_)};
  }

 private:
  // Nodes that no output depends on are passed over.
  void count_uses() {
    needed_.resize(static_cast<size_t>(graph_.node_size()));
    for (const ValueInfoProto& output : graph_.output()) ++uses_[output.name()];
    for (int i = graph_.node_size() - 1; i >= 0; --i) {
      bool needed = false;
      for (const std::string& output : graph_.node(i).output())
        needed = needed || (!output.empty() && uses_.contains(output));
      needed_[static_cast<size_t>(i)] = needed;
      if (!needed) continue;
      for (const std::string& input : graph_.node(i).input()) ++uses_[input];
      if (brings_channels_first(graph_.node(i))) transposed_.insert(graph_.node(i).input(0));
    }
  }

  bool is_used(const std::string& name) const { return !name.empty() && uses_.contains(name); }

  void read_inputs() {
    std::vector<const ValueInfoProto*> inputs;
    for (const ValueInfoProto& input : graph_.input())
      if (!initializers_.contains(input.name()) && is_used(input.name())) inputs.push_back(&input);
    if (inputs.empty())
      throw UserError("has no inputs that its outputs depend on; Cortado computes from inputs");
    std::vector<Shape> shapes;
    if (options_.input_shapes) shapes = options_.input_shapes(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      try {
        check_type(*inputs[i]);
        define(inputs[i]->name(), i < shapes.size() ? add_input(*inputs[i], shapes[i], true)
                                                    : add_input(*inputs[i], shape_of(*inputs[i]), false));
      } catch (const UserError& error) {
        throw UserError(fmt::format("input '{}': {}", inputs[i]->name(), error.what()));
      }
    }
  }

  // An input that the graph takes with channels last, and transposes first, has them first in the net.
  Value add_input(const ValueInfoProto& input, Shape shape, bool is_of_net) {
    const int rank = shape.rank();
    if (!transposed_.contains(input.name()) || rank < 3) return net_.add_input(input.name(), shape);
    std::vector<int> order{0};
    for (int axis = 2; axis < rank; ++axis) order.push_back(axis);
    order.push_back(1);
    if (!is_of_net) {
      const Shape last = shape;
      for (int axis = 0; axis < rank; ++axis) shape.set(order[static_cast<size_t>(axis)], last[axis]);
    }
    Value value = net_.add_input(input.name(), shape);
    value.order = std::move(order);
    notices_.push_back(
        fmt::format("input '{}' has its channels last in the model; the net takes them first, as {}",
                    input.name(), shape.text()));
    return value;
  }

  static void check_type(const ValueInfoProto& input) {
    const int type = input.type().tensor_type().elem_type();
    if (type != TensorProto::FLOAT)
      throw UserError(
          fmt::format("is of type {}; layers compute in FLOAT: export the model so", type_name(type)));
  }

  Shape shape_of(const ValueInfoProto& input) const {
    const TypeProto::Tensor& type = input.type().tensor_type();
    if (!type.has_shape())
      throw UserError("has no shape; give an input shape, that of a sample, as in 3x224x224");
    Shape shape;
    for (const TensorShapeProto::Dimension& dimension : type.shape().dim()) {
      const bool is_batch = shape.rank() == 0;
      if (is_batch && options_.batch > 0) {
        shape.append(options_.batch);
      } else if (dimension.has_dim_value() && dimension.dim_value() > 0) {
        shape.append(dimension.dim_value());
      } else if (is_batch) {
        shape.append(1);
      } else {
        throw UserError(fmt::format(
            "leaves axis {} open{}; give an input shape, that of a sample, as in 3x224x224", shape.rank(),
            dimension.dim_param().empty() ? "" : " ('" + dimension.dim_param() + "')"));
      }
    }
    return shape;
  }

  void define(const std::string& name, Value value) {
    const auto uses = uses_.find(name);
    value.shared = value.shared || (uses != uses_.end() && uses->second > 1);
    if (initializers_.contains(name) || !values_.emplace(name, std::move(value)).second)
      throw UserError(fmt::format("value '{}' is made twice; the file is broken", name));
  }

  // A value by name; null: an optional input that is not given.
  const Value* value_of(const std::string& name) {
    if (name.empty()) return nullptr;
    const auto found = values_.find(name);
    if (found != values_.end()) return &found->second;
    const auto initializer = initializers_.find(name);
    if (initializer == initializers_.end())
      throw UserError(
          fmt::format("reads '{}', which is no input, no initializer and made by no node before it", name));
    Value value;
    try {
      value.constant = read_constant(*initializer->second, options_.folder);
      read_ += value.constant->size();
    } catch (const UserError& error) {
      throw UserError(fmt::format("initializer '{}' {}", name, error.what()));
    }
    return &values_.emplace(name, std::move(value)).first->second;
  }

  void read_node(const NodeProto& message) {
    try {
      convert(message);
    } catch (const UserError& error) {
      const std::string name = !message.name().empty() ? message.name()
                               : message.output_size() ? message.output(0)
                                                       : "";
      throw UserError(fmt::format("node '{}' ({}): {}", name, message.op_type(), error.what()));
    }
  }

  void convert(const NodeProto& message) {
    if (!is_default_domain(message.domain()))
      throw UserError(fmt::format("is of domain '{}'; only ONNX's own operators are read", message.domain()));
    std::vector<const Value*> inputs;
    bool constant = true;
    for (const std::string& name : message.input()) {
      inputs.push_back(value_of(name));
      constant = constant && (!inputs.back() || inputs.back()->constant);
    }
    std::vector<bool> wanted;
    for (const std::string& output : message.output()) wanted.push_back(is_used(output));
    Node node(message, std::move(inputs), std::move(wanted), net_, notices_);
    if (message.op_type() == "Constant") {
      read_constant_node(node);
    } else if (!constant || !fold_node(node)) {
      operator_named(message.op_type()).read(node);
      if (net_.weight_values() > most_copies * (most_computed + read_ + computed_))
        throw UserError(
            "the layers so far need many more weights than the file has; export it with fewer copies");
      note_weights(message);
    }
    node.attributes.check_all_read();
    for (int i = 0; i < node.outputs(); ++i) {
      Value& result = node.results()[static_cast<size_t>(i)];
      if (!is_used(message.output(i))) continue;
      if (!result.constant && result.blob.empty())
        throw UserError(fmt::format("its output {} is read, which Cortado does not compute", i));
      define(message.output(i), std::move(result));
    }
  }

  void read_constant_node(Node& node) {
    node.check_inputs(0, 0);
    Value value;
    if (const TensorProto* tensor = node.attributes.tensor("value")) {
      value.constant = read_constant(*tensor, options_.folder);
    } else if (const auto integers = node.attributes.integers("value_ints")) {
      value.constant = constant_of(Shape{static_cast<int64_t>(integers->size())}, *integers);
    } else if (const auto floats = node.attributes.numbers("value_floats")) {
      value.constant = constant_of(Shape{static_cast<int64_t>(floats->size())}, *floats);
    } else if (node.attributes.has("value_int")) {
      value.constant = constant_of(Shape{}, std::vector<int64_t>{node.attributes.integer("value_int", 0)});
    } else if (node.attributes.has("value_float")) {
      value.constant = constant_of(
          Shape{}, std::vector<float>{static_cast<float>(node.attributes.number("value_float", 0))});
    } else {
      throw UserError("its value is no tensor of numbers");
    }
    node.give(std::move(value));
  }

  // Whether the node is arithmetic on constants; it makes no layer then.
  bool fold_node(Node& node) {
    const std::vector<ConstantPtr> results = fold(node);
    for (size_t i = 0; i < results.size(); ++i) {
      computed_ += results[i]->size();
      if (computed_ > most_computed + most_copies * read_)
        throw UserError("the graph computes more constants than are kept; fold them before");
      Value value;
      value.constant = results[i];
      node.give(std::move(value), static_cast<int>(i));
    }
    return !results.empty();
  }

  void note_weights(const NodeProto& message) {
    for (const std::string& name : message.input()) {
      if (name.empty() || !initializers_.contains(name)) continue;
      const Constant& weight = *values_.at(name).constant;
      if (weight.size() > 1 && !weight.whole) ++weights_[name];
    }
  }

  void name_outputs() {
    std::vector<std::pair<std::string, Value>> outputs;
    for (const ValueInfoProto& output : graph_.output()) {
      try {
        const Value* value = value_of(output.name());
        if (!value || value->constant)
          throw UserError("is a constant; a net computes what depends on its inputs");
        net_.blob_of(*value);  // refuses what no layer makes
        outputs.emplace_back(output.name(), net_.in_order(*value));
      } catch (const UserError& error) {
        throw UserError(fmt::format("output '{}': {}", output.name(), error.what()));
      }
    }
    net_.name_outputs(outputs);
  }

  void note_copies() {
    for (const auto& [name, layers] : weights_)
      if (layers > 1)
        notices_.push_back(
            fmt::format("weight '{}' is used by {} nodes; each layer gets its own copy, and a "
                        "training may part them",
                        name, layers));
  }

  const GraphProto& graph_;
  const ImportOptions& options_;
  std::unordered_map<std::string, const TensorProto*> initializers_;
  std::unordered_map<std::string, int> uses_;
  std::vector<bool> needed_;
  std::set<std::string> transposed_;  // values that a Transpose gives their channels first
  std::unordered_map<std::string, Value> values_;
  std::map<std::string, int> weights_;
  static constexpr int64_t most_copies = 4;  // of the initializers, in all that is computed of them
  int64_t read_ = 0, computed_ = 0;          // numbers of initializers and of computed constants
  NetWriter net_;
  std::vector<std::string> notices_;
};

// What no node said: a net that other commands would refuse.
void check_net(const ImportedNet& imported) {
  const NetFile file = net_of_message(imported.net, "the net");
  const LoadedNetwork loaded = load_network(file, net_state(Phase::test), declared_source_shapes);
  match_weights(loaded.network, imported.weights, "the net's weights");
}

}  // namespace

ModelProto read_model(const std::string& path) {
  ModelProto model;
  parse_binary(read_file(path), path, model);
  if (!model.has_graph()) throw UserError(fmt::format("{}: has no graph; is it an ONNX model?", path));
  return model;
}

ImportedNet import_model(const ModelProto& model, const std::string& path, const ImportOptions& options) {
  try {
    check_opset(model);
    ImportedNet imported = GraphReader(model.graph(), options).read();
    if (!model.graph().name().empty()) imported.net.set_name(printable(model.graph().name()));
    check_finite(imported.weights, "its weights");
    check_net(imported);
    return imported;
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace cortado::onnx
