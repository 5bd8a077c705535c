#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cortado/app/commands.h"
#include "cortado/app/common.h"
#include "cortado/app/help.h"
#include "cortado/app/load_without_data.h"
#include "cortado/app/named_files.h"
#include "cortado/base/file.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

struct ShowArguments {
  ModelOptions model;
  std::string json, dot, prototxt;
};

// What `show` tells of one layer.
struct LayerSummary {
  std::string name, type, kernel, output;
  int64_t parameters = 0;
  double flops = 0;
};

int64_t batch_of(const Network& network) {
  for (const auto& node : network.nodes()) {
    if (!node.layer->is_source()) continue;
    const Shape& shape = network.tensors()[static_cast<size_t>(node.outputs.front())].shape;
    if (shape.rank() > 0 && shape[0] > 0) return shape[0];
  }
  return 1;
}

LayerSummary summarize(const Network& network, int index) {
  const Network::Node& node = network.nodes()[static_cast<size_t>(index)];
  LayerSummary summary{.name = node.name, .type = std::string(node.layer->type())};
  for (int p : node.parameters) {
    const Network::Parameter& parameter = network.parameters()[static_cast<size_t>(p)];
    if (summary.kernel.empty()) summary.kernel = parameter.spec.shape.text();
    if (parameter.owner == index && parameter.spec.learnable)
      summary.parameters += parameter.spec.shape.size();
  }
  for (int output : node.outputs) {
    summary.output +=
        (summary.output.empty() ? "" : ", ") + network.tensors()[static_cast<size_t>(output)].shape.text();
  }
  summary.flops = network.forward_flops(index).count;
  return summary;
}

std::string table_text(const Network& network, const std::vector<LayerSummary>& layers) {
  using Align = Table::Align;
  Table table({{"layer", Align::left},
               {"type", Align::left},
               {"weights", Align::left},
               {"output", Align::left},
               {"parameters"},
               {"MFLOP/image"}});
  double batch = static_cast<double>(batch_of(network)), flops = 0;
  for (const LayerSummary& layer : layers) {
    std::string parameters = layer.parameters > 0 ? grouped(layer.parameters) : "";
    table.add({layer.name, layer.type, layer.kernel, layer.output, parameters,
               layer.flops > 0 ? fmt::format("{:.2f}", layer.flops / batch / 1e6) : ""});
    flops += layer.flops;
  }
  table.add_rule();
  table.add(
      {"total", "", "", "", grouped(network.parameter_count()), fmt::format("{:.2f}", flops / batch / 1e6)});
  return table.text() + fmt::format("\nForward pass of the batch of {}: {:.2f} GFLOP\n", batch, flops / 1e9);
}

std::string json_text(const Network& network, const std::vector<LayerSummary>& layers) {
  Json list = Json::array();
  double flops = 0;
  for (const LayerSummary& layer : layers) {
    list.push_back({{"name", layer.name},
                    {"type", layer.type},
                    {"weights", layer.kernel},
                    {"output", layer.output},
                    {"parameters", layer.parameters},
                    {"forward_flops", layer.flops}});
    flops += layer.flops;
  }
  Json report{{"name", network.name()},
              {"batch", batch_of(network)},
              {"parameters", network.parameter_count()},
              {"forward_flops", flops},
              {"layers", list}};
  return report.dump(2) + "\n";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string dot_text(const Network& network, const std::vector<LayerSummary>& layers) {
  std::string dot =
      fmt::format("digraph {} {{\n  node [shape=box, fontname=\"sans-serif\"];\n", quoted(network.name()));
  for (size_t i = 0; i < layers.size(); ++i) {
    dot += fmt::format("  n{} [label={}];\n", i, quoted(layers[i].name + "  (" + layers[i].type + ")"));
  }
  for (const Network::Tensor& tensor : network.tensors()) {
    for (int consumer : tensor.consumers) {
      dot +=
          fmt::format("  n{} -> n{} [label={}];\n", tensor.producer, consumer, quoted(tensor.shape.text()));
    }
  }
  return dot + "}\n";
}

void run_show(const ShowArguments& a) {
  CommandFiles files;
  add_inputs(files, a.model);
  files.writes("--json", a.json);
  files.writes("--dot", a.dot);
  files.writes("--prototxt", a.prototxt);
  files.check();
  LoadedNetwork loaded = load_without_data(a.model, Phase::test);
  const Network& network = loaded.network;
  std::vector<LayerSummary> layers;
  for (size_t i = 0; i < network.nodes().size(); ++i)
    layers.push_back(summarize(network, static_cast<int>(i)));
  fmt::print("{}\n\n{}", network.name(), table_text(network, layers));
  if (!a.json.empty()) write_file_atomically(a.json, json_text(network, layers));
  if (!a.dot.empty()) write_file_atomically(a.dot, dot_text(network, layers));
  if (!a.prototxt.empty()) write_net(a.prototxt, read_net(a.model.model).net);
}

}  // namespace

Command add_show_command(CLI::App& app) {
  auto a = std::make_shared<ShowArguments>();
  CLI::App* command = app.add_subcommand("show", "Show a model's layers, shapes, parameters and FLOPs");
  add_model_options(*command, a->model);
  add_shape_option(*command, a->model);
  command->add_option("--json", a->json, "Write the table as JSON");
  command->add_option("--dot", a->dot, "Write the graph for Graphviz");
  command->add_option("--prototxt", a->prototxt, "Write the model file, old generations as the current one");
  command->footer(help_footer({"cortado show --model models/vgg-16/deploy.prototxt",
                               "cortado show --model old.prototxt --prototxt new.prototxt"}));
  refuse_empty_names(*command, {"--model", "--json", "--dot", "--prototxt"});
  return {command, [a] { run_show(*a); }};
}

}  // namespace cortado
