#include "cortado/net/network.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

std::string LayerDeclaration::text() const { return fmt::format("{}: layer '{}'", where.text(), name); }

std::string SourceLocation::text() const { return line > 0 ? fmt::format("{}:{}", file, line) : file; }

Network Network::in(Precision precision) const {
  Network network = *this;
  for (const Node& node : nodes_) {
    std::vector<ElementType> inputs;
    for (int input : node.inputs) inputs.push_back(network.tensors_[input].type);
    for (int output : node.outputs) {
      const Tensor& of = tensors_[output];
      const bool narrow = precision == Precision::bf16 && !of.consumers.empty();
      network.tensors_[output].type =
          narrow ? output_type(*node.layer, inputs, of.producer_output) : ElementType::f32;
    }
  }
  return network;
}

Network::Network(std::string name, bool learns, std::vector<Node> nodes, std::vector<Tensor> tensors,
                 IndexedVector<ParameterIndex, Parameter> parameters)
    : name_(std::move(name)),
      learns_(learns),
      nodes_(std::move(nodes)),
      tensors_(std::move(tensors)),
      parameters_(std::move(parameters)) {
  for (size_t t = 0; t < tensors_.size(); ++t) tensor_named_[tensors_[t].name] = static_cast<int>(t);
  for (size_t n = 0; n < nodes_.size(); ++n) node_named_.emplace(nodes_[n].name, static_cast<int>(n));
}

std::vector<int> Network::outputs() const {
  std::vector<int> unread;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].consumers.empty() && tensors_[t].named) unread.push_back(static_cast<int>(t));
  }
  std::ranges::sort(unread, {},
                    [&](int t) { return std::string_view(tensors_[static_cast<size_t>(t)].name); });
  return unread;
}

int Network::tensor(const std::string& name) const {
  const auto found = tensor_named_.find(name);
  return found == tensor_named_.end() ? -1 : found->second;
}

int Network::node(const std::string& name) const {
  const auto found = node_named_.find(name);
  return found == node_named_.end() ? -1 : found->second;
}

int64_t Network::parameter_count() const {
  int64_t count = 0;
  for (const Parameter& parameter : parameters_) {
    if (parameter.spec.learnable) count += parameter.spec.shape.size();
  }
  return count;
}

Flops Network::forward_flops(int node) const {
  std::vector<Shape> inputs, outputs;
  for (int t : nodes_[node].inputs) inputs.push_back(tensors_[t].shape);
  for (int t : nodes_[node].outputs) outputs.push_back(tensors_[t].shape);
  return nodes_[node].layer->forward_flops(inputs, outputs);
}

}  // namespace cortado
