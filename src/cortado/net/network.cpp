#include "cortado/net/network.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::string LayerDeclaration::text() const { return fmt::format("{}: layer '{}'", where.text(), name); }

std::string SourceLocation::text() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

IndexedVector<TensorIndex, ElementType> Network::types(
    const IndexedVector<NodeIndex, Precision>& of_nodes) const {
  IndexedVector<TensorIndex, ElementType> types(tensors_.size(), ElementType::f32);
  for (NodeIndex n : indices(nodes_)) {
    if (of_nodes[n] == Precision::f32) continue;
    std::vector<ElementType> inputs;
    for (TensorIndex input : nodes_[n].inputs) inputs.push_back(types[input]);
    for (TensorIndex output : nodes_[n].outputs) {
      const Tensor& of = tensors_[output];
      if (!of.consumers.empty()) types[output] = output_type(*nodes_[n].layer, inputs, of.producer_output);
    }
  }
  return types;
}

Network Network::in(Precision precision) const {
  Network network = *this;
  network.precision_ = precision;
  const auto types = this->types(IndexedVector<NodeIndex, Precision>(nodes_.size(), precision));
  for (TensorIndex tensor : indices(tensors_)) network.tensors_[tensor].type = types[tensor];
  return network;
}

Network::Network(std::string name, bool learns, IndexedVector<NodeIndex, Node> nodes,
                 IndexedVector<TensorIndex, Tensor> tensors,
                 IndexedVector<ParameterIndex, Parameter> parameters)
    : name_(std::move(name)),
      learns_(learns),
      nodes_(std::move(nodes)),
      tensors_(std::move(tensors)),
      parameters_(std::move(parameters)) {
  for (TensorIndex tensor : indices(tensors_)) tensor_named_[tensors_[tensor].name] = tensor;
  for (NodeIndex node : indices(nodes_)) node_named_.emplace(nodes_[node].name, node);
}

std::vector<TensorIndex> Network::outputs() const {
  std::vector<TensorIndex> unread;
  for (TensorIndex tensor : indices(tensors_)) {
    if (tensors_[tensor].consumers.empty() && tensors_[tensor].named) unread.push_back(tensor);
  }
  std::ranges::sort(unread, {}, [&](TensorIndex tensor) { return std::string_view(tensors_[tensor].name); });
  return unread;
}

TensorIndex Network::tensor(const std::string& name) const {
  const auto found = tensor_named_.find(name);
  return found == tensor_named_.end() ? TensorIndex() : found->second;
}

NodeIndex Network::node(const std::string& name) const {
  const auto found = node_named_.find(name);
  return found == node_named_.end() ? NodeIndex() : found->second;
}

int64_t Network::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec.learnable) count += parameter.spec.shape.size();
  }
  return count;
}

std::vector<Shape> Network::shapes_of(const std::vector<TensorIndex>& tensors) const {
  std::vector<Shape> shapes;
  for (TensorIndex tensor : tensors) shapes.push_back(tensors_[tensor].shape);
  return shapes;
}

Flops Network::forward_flops(NodeIndex node) const {
  return nodes_[node].layer->forward_flops(shapes_of(nodes_[node].inputs), shapes_of(nodes_[node].outputs));
}

}  // namespace cortado
