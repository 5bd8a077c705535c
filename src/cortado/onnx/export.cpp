#include "cortado/onnx/export.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/version.h"
#include "cortado/onnx/write/layers.h"

namespace cortado::onnx {
namespace {

// Layers that a model for applying the net has no place for.
bool is_left_out(const Layer& layer) {
  static const std::set<std::string_view> types{"SoftmaxWithLoss", "SigmoidCrossEntropyLoss",
                                                "EuclideanLoss",   "HingeLoss",
                                                "ContrastiveLoss", "Accuracy",
                                                "Silence",         "HDF5Output"};
  return types.contains(layer.type());
}

const LayerWriter& writer_of(std::string_view type) {
  static const std::map<std::string_view, LayerWriter> table = [] {
    std::map<std::string_view, LayerWriter> writers;
    for (const auto family : {window_writers, weight_writers, function_writers, shape_writers})
      for (const LayerWriter& writer : family()) writers[writer.type] = writer;
    return writers;
  }();
  const auto found = table.find(type);
  if (found != table.end()) return found->second;
  throw UserError(fmt::format("a {} layer is not written to ONNX; convert a net without it", type));
}

// Writes the nodes of a network in order.
class NetworkWriter {
 public:
  NetworkWriter(const Network& network, const WrittenLayer::Values& values, ExportedModel& result)
      : network_(network),
        values_(values),
        result_(result),
        graph_(*result.model.mutable_graph()),
        writer_(graph_) {
    names_.resize(network.tensors().size());
    find_needed();
    const NodeIndex source = first_source();
    batch_ = source ? network.tensors()[network.nodes()[source].outputs[0]].shape[0] : 0;
    for (TensorIndex t : indices(network.tensors())) {
      const Shape& shape = network.tensors()[t].shape;
      if (reads_[t] > 0 && (shape.rank() == 0 || shape[0] != batch_)) batch_ = -1;
    }
  }

  void write() {
    name_tensors();
    for (NodeIndex n : indices(network_.nodes())) {
      if (!needed_[n]) continue;
      if (network_.nodes()[n].layer->is_source()) {
        add_inputs(n);
      } else {
        add_layer(n);
      }
    }
    if (graph_.node_size() == 0)
      throw UserError("no layer is left to convert but its sources, losses and accuracies");
    for (TensorIndex t : outputs_) add_value(*graph_.add_output(), t);
  }

 private:
  NodeIndex first_source() const {
    for (NodeIndex n : indices(network_.nodes())) {
      const Network::Node& node = network_.nodes()[n];
      if (needed_[n] && node.layer->is_source() && network_.tensors()[node.outputs[0]].shape.rank() > 0)
        return n;
    }
    return {};
  }

  // Layers that are kept, what they read, and the tensors that none of them reads: the graph's outputs.
  void find_needed() {
    needed_.resize(network_.nodes().size());
    reads_.resize(network_.tensors().size());
    for (NodeIndex n : indices(network_.nodes())) {
      const Network::Node& node = network_.nodes()[n];
      if (is_left_out(*node.layer)) {
        left_out_.insert(n);
        result_.notices.push_back(fmt::format("layer '{}' ({}) is left out", node.name, node.layer->type()));
        continue;
      }
      if (node.layer->is_source()) continue;
      needed_[n] = true;
      for (TensorIndex input : node.inputs) ++reads_[input];
    }
    for (NodeIndex n : indices(network_.nodes())) {
      const Network::Node& node = network_.nodes()[n];
      for (TensorIndex output : node.outputs) {
        if (node.layer->is_source() && reads_[output] > 0) needed_[n] = true;
        const bool is_silenced = !network_.tensors()[output].consumers.empty() && only_silenced(output);
        if (needed_[n] && !node.layer->is_source() && reads_[output] == 0 && !is_silenced &&
            !is_mask(node, output)) {
          outputs_.push_back(output);
          ++reads_[output];
        }
      }
    }
  }

  bool only_silenced(TensorIndex tensor) const {
    return std::ranges::all_of(network_.tensors()[tensor].consumers,
                               [&](NodeIndex n) { return network_.nodes()[n].layer->type() == "Silence"; });
  }
  // The positions of maxima, which nobody reads.
  static bool is_mask(const Network::Node& node, TensorIndex output) {
    return node.layer->type() == "Pooling" && output != node.outputs[0];
  }

  // The last tensor of a name has it; those before it, which layers work on in place, get others.
  void name_tensors() {
    for (TensorIndex t : indices(network_.tensors()))
      if (reads_[t] > 0 && network_.tensor(network_.tensors()[t].name) == t)
        names_[t] = writer_.unused(network_.tensors()[t].name);
    for (TensorIndex t : indices(network_.tensors())) {
      if (reads_[t] == 0 || !names_[t].empty()) continue;
      const Network::Tensor& tensor = network_.tensors()[t];
      names_[t] = writer_.unused(fmt::format("{}/{}", tensor.name, network_.nodes()[tensor.producer].name));
    }
  }

  void add_value(ValueInfoProto& value, TensorIndex t) const {
    value.set_name(names_[t]);
    TypeProto::Tensor& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(TensorProto::FLOAT);
    const Shape& shape = network_.tensors()[t].shape;
    type.mutable_shape();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      TensorShapeProto::Dimension& dimension = *type.mutable_shape()->add_dim();
      if (axis == 0 && batch_ > 0) {
        dimension.set_dim_param("N");
      } else {
        dimension.set_dim_value(shape[axis]);
      }
    }
  }

  void add_inputs(NodeIndex n) {
    for (TensorIndex output : network_.nodes()[n].outputs)
      if (reads_[output] > 0) add_value(*graph_.add_input(), output);
  }

  void add_layer(NodeIndex n) {
    const Network::Node& node = network_.nodes()[n];
    try {
      std::vector<std::string> inputs, outputs;
      for (TensorIndex input : node.inputs) {
        if (left_out_.contains(network_.tensors()[input].producer))
          throw UserError("it reads what a loss computes, which is left out");
        inputs.push_back(names_[input]);
      }
      for (TensorIndex output : node.outputs) outputs.push_back(names_[output]);
      if (outputs[0].empty()) outputs[0] = writer_.unused(node.name + "/unread");
      WrittenLayer layer(network_, n, values_, writer_, inputs, outputs);
      writer_of(node.layer->type()).write(layer);
      if (is_fused_norm(network_, n)) names_[node.outputs[0]] = names_[node.inputs[0]];
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: layer '{}': {}", node.where.text(), node.name, error.what()));
    }
  }

  const Network& network_;
  const WrittenLayer::Values& values_;
  ExportedModel& result_;
  GraphProto& graph_;
  GraphWriter writer_;
  IndexedVector<NodeIndex, int> needed_;
  IndexedVector<TensorIndex, int> reads_;
  IndexedVector<TensorIndex, std::string> names_;
  std::vector<TensorIndex> outputs_;
  std::set<NodeIndex> left_out_;
  int64_t batch_ = 0;  // samples of every tensor; -1: some have another first extent
};

}  // namespace

ExportedModel export_network(const Network& network,
                             const std::function<std::vector<float>(ParameterIndex)>& values) {
  ExportedModel result;
  constexpr int64_t version_of_format = 7;  // the one of opset 13
  result.model.set_ir_version(version_of_format);
  result.model.set_producer_name("cortado");
  result.model.set_producer_version(std::string(version()));
  OperatorSetIdProto& opset = *result.model.add_opset_import();
  opset.set_domain("");
  opset.set_version(written_opset);
  result.model.mutable_graph()->set_name(network.name().empty() ? "net" : network.name());
  NetworkWriter(network, values, result).write();
  return result;
}

void write_model(const std::string& path, const ModelProto& model) {
  constexpr size_t most = INT32_MAX;
  const size_t bytes = model.ByteSizeLong();
  if (bytes > most)
    throw UserError(
        fmt::format("{}: {} bytes are more than an ONNX file can hold (2 GiB); write the weights as "
                    ".safetensors",
                    path, bytes));
  std::string content;
  ensure(model.SerializeToString(&content), "a model cannot be serialized");
  write_file_atomically(path, content);
}

}  // namespace cortado::onnx
