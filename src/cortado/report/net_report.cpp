#include "cortado/report/net_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

// A row of the table: one layer.
struct LayerSummary {
  std::string name, type, kernel, output;
  int64_t parameters = 0;
  double flops = 0;
};

LayerSummary summary_of(const Network& network, NodeIndex index) {
  const Network::Node& node = network.nodes()[index];
  LayerSummary summary{.name = node.name, .type = std::string(node.layer->type())};
  for (ParameterIndex p : node.parameters) {
    const Network::Parameter& parameter = network.parameters()[p];
    if (summary.kernel.empty()) summary.kernel = parameter.spec.shape.text();
    if (parameter.declared_by == index && parameter.spec.learnable)
      summary.parameters += parameter.spec.shape.size();
  }
  for (TensorIndex output : node.outputs) {
    summary.output += (summary.output.empty() ? "" : ", ") + network.tensors()[output].shape.text();
  }
  summary.flops = network.forward_flops(index).count;
  return summary;
}

IndexedVector<NodeIndex, LayerSummary> layers_of(const Network& network) {
  IndexedVector<NodeIndex, LayerSummary> layers;
  for (NodeIndex i : indices(network.nodes())) layers.push_back(summary_of(network, i));
  return layers;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace

int64_t batch_of(const Network& network) {
  for (const auto& node : network.nodes()) {
    if (!node.layer->is_source() || node.outputs.empty()) continue;
    const Shape& shape = network.tensors()[node.outputs[0]].shape;
    if (shape.rank() > 0) return shape[0];
  }
  return 0;
}

std::string net_text(const Network& network) {
  using Align = Table::Align;
  Table table({{"layer", Align::left},
               {"type", Align::left},
               {"weights", Align::left},
               {"output", Align::left},
               {"parameters"},
               {"MFLOP/image"}});
  double batch = static_cast<double>(std::max<int64_t>(1, batch_of(network))), flops = 0;
  for (const LayerSummary& layer : layers_of(network)) {
    std::string parameters = layer.parameters > 0 ? grouped(layer.parameters) : "";
    table.add({layer.name, layer.type, layer.kernel, layer.output, parameters,
               layer.flops > 0 ? fmt::format("{:.2f}", layer.flops / batch / 1e6) : ""});
    flops += layer.flops;
  }
  table.add_rule();
  table.add(
      {"total", "", "", "", grouped(network.parameter_count()), fmt::format("{:.2f}", flops / batch / 1e6)});
  return network.name() + "\n\n" + table.text() +
         fmt::format("\nForward pass of the batch of {}: {:.2f} GFLOP\n", batch, flops / 1e9);
}

std::string net_json(const Network& network) {
  Json list = Json::array();
  double flops = 0;
  for (const LayerSummary& layer : layers_of(network)) {
    list.push_back({{"name", layer.name},
                    {"type", layer.type},
                    {"weights", layer.kernel},
                    {"output", layer.output},
                    {"parameters", layer.parameters},
                    {"forward_flops", layer.flops}});
    flops += layer.flops;
  }
  Json report{{"name", network.name()},
              {"batch", std::max<int64_t>(1, batch_of(network))},
              {"parameters", network.parameter_count()},
              {"forward_flops", flops},
              {"layers", list}};
  return report.dump(2) + "\n";
}

std::string net_dot(const Network& network) {
  const IndexedVector<NodeIndex, LayerSummary> layers = layers_of(network);
  std::string dot =
      fmt::format("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\"];\n", quoted(network.name()));
  for (NodeIndex i : indices(layers)) {
    dot += fmt::format("  n{} [label={}];\n", i, quoted(layers[i].name + "  (" + layers[i].type + ")"));
  }
  for (const Network::Tensor& tensor : network.tensors()) {
    for (NodeIndex consumer : tensor.consumers) {
      dot +=
          fmt::format("  n{} -> n{} [label={}];\n", tensor.producer, consumer, quoted(tensor.shape.text()));
    }
  }
  return dot + "}\n";
}

std::string precision_text(const Network& network) {
  using Align = Table::Align;
  std::vector<LayerPtr> layers;
  for (const Network::Node& node : network.nodes()) layers.push_back(node.layer);
  Table policy({{"layers", Align::left}, {"bf16", Align::left}, {"f32", Align::left}});
  for (const TypePrecision& of : precision_policy(layers)) policy.add({of.type, of.bf16, of.f32});
  Table blobs({{"blob", Align::left}, {"of layer", Align::left}, {"type", Align::left}});
  for (const Network::Tensor& tensor : network.tensors()) {
    blobs.add(
        {tensor.name, network.nodes()[tensor.producer].name, std::string(cortado::name_of(tensor.type))});
  }
  return "\nPrecision bf16: types of tensors; sums within kernels are f32\n\n" + policy.text() +
         "\nBlobs and their gradients; what nobody reads is f32\n\n" + blobs.text();
}

}  // namespace cortado
