#include "cortado/train/torchvision.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// What torchvision calls a layer of products and the batch norm after it. `layer` is a regular expression of
// our name. In the others {1} is what its first group found, {1-1} that number less one; {#} counts the
// layers of the net before this one that torchvision numbers, {@} blocks (stage2_1_expand: of stage2_1).
struct Rule {
  const char* layer;
  const char* product;
  const char* norm = "";
};

constexpr Rule alexnet[] = {
    {"conv[1-5]", "features.{#}"}, {"fc6", "classifier.1"}, {"fc7", "classifier.4"}, {"fc8", "classifier.6"}};

constexpr Rule vgg[] = {{R"(conv\d_\d)", "features.{#}", "features.{#+1}"},
                        {"fc6", "classifier.0"},
                        {"fc7", "classifier.3"},
                        {"fc8", "classifier.6"}};

constexpr Rule resnet[] = {
    {"conv1", "conv1", "bn1"},
    {R"(res(\d)_(\d{1,4})_conv(\d))", "layer{1-1}.{2-1}.conv{3}", "layer{1-1}.{2-1}.bn{3}"},
    {R"(res(\d)_(\d{1,4})_shortcut)", "layer{1-1}.{2-1}.downsample.0", "layer{1-1}.{2-1}.downsample.1"},
    {"fc", "fc"}};

constexpr Rule densenet[] = {
    {"conv1", "features.conv0", "features.norm0"},
    {R"(dense(\d)_(\d{1,4})_(?:conv|norm)(\d))", "features.denseblock{1}.denselayer{2}.conv{3}",
     "features.denseblock{1}.denselayer{2}.norm{3}"},
    {R"(transition(\d)(?:_conv)?)", "features.transition{1}.conv", "features.transition{1}.norm"},
    {"norm5", "", "features.norm5"},
    {"fc", "classifier"}};

constexpr Rule squeezenet[] = {{"conv1", "features.0"},
                               {R"(fire([23])/(?:(squeeze)1x1|(expand.x.)))", "features.{1+1}.{2}{3}"},
                               {R"(fire([45])/(?:(squeeze)1x1|(expand.x.)))", "features.{1+2}.{2}{3}"},
                               {R"(fire([6-9])/(?:(squeeze)1x1|(expand.x.)))", "features.{1+3}.{2}{3}"},
                               {"conv10", "classifier.1"}};

constexpr Rule googlenet[] = {
    {"conv1", "conv1.conv", "conv1.bn"},
    {"conv2_reduce", "conv2.conv", "conv2.bn"},
    {"conv2", "conv3.conv", "conv3.bn"},
    {"inception_(..)_1x1", "inception{1}.branch1.conv", "inception{1}.branch1.bn"},
    {"inception_(..)_3x3_reduce", "inception{1}.branch2.0.conv", "inception{1}.branch2.0.bn"},
    {"inception_(..)_3x3", "inception{1}.branch2.1.conv", "inception{1}.branch2.1.bn"},
    {"inception_(..)_5x5_reduce", "inception{1}.branch3.0.conv", "inception{1}.branch3.0.bn"},
    {"inception_(..)_5x5", "inception{1}.branch3.1.conv", "inception{1}.branch3.1.bn"},
    {"inception_(..)_pool_proj", "inception{1}.branch4.1.conv", "inception{1}.branch4.1.bn"},
    {"fc", "fc"}};

constexpr Rule inception[] = {
    {"conv_(3b)", "Conv2d_{1}_1x1.conv", "Conv2d_{1}_1x1.bn"},
    {"conv_(..)", "Conv2d_{1}_3x3.conv", "Conv2d_{1}_3x3.bn"},
    {"mixed_(7[bc])_3x3_1x3", "Mixed_{1}.branch3x3_2a.conv", "Mixed_{1}.branch3x3_2a.bn"},
    {"mixed_(7[bc])_3x3_3x1", "Mixed_{1}.branch3x3_2b.conv", "Mixed_{1}.branch3x3_2b.bn"},
    {"mixed_(7[bc])_3x3dbl_1x3", "Mixed_{1}.branch3x3dbl_3a.conv", "Mixed_{1}.branch3x3dbl_3a.bn"},
    {"mixed_(7[bc])_3x3dbl_3x1", "Mixed_{1}.branch3x3dbl_3b.conv", "Mixed_{1}.branch3x3dbl_3b.bn"},
    {"mixed_(..)_pool_proj", "Mixed_{1}.branch_pool.conv", "Mixed_{1}.branch_pool.bn"},
    {R"(mixed_(..)_([\dx]+(?:dbl)?(?:_\d)?))", "Mixed_{1}.branch{2}.conv", "Mixed_{1}.branch{2}.bn"},
    {"aux_conv([01])", "AuxLogits.conv{1}.conv", "AuxLogits.conv{1}.bn"},
    {"aux_fc", "AuxLogits.fc"},
    {"fc", "fc"}};

constexpr Rule mobilenet_v2[] = {
    {"conv1", "features.0.0", "features.0.1"},
    {"stage1_1_depthwise", "features.1.conv.0.0", "features.1.conv.0.1"},
    {"stage1_1_project", "features.1.conv.1", "features.1.conv.2"},
    {R"((?!stage2_3)stage\d_\d_expand)", "features.{@}.conv.0.0", "features.{@}.conv.0.1"},
    {R"(stage\d_\d_depthwise)", "features.{@}.conv.1.0", "features.{@}.conv.1.1"},
    {R"(stage\d_\d_project)", "features.{@}.conv.2", "features.{@}.conv.3"},
    {"conv_last", "features.18.0", "features.18.1"},
    {"fc", "classifier.1"}};

constexpr Rule mnasnet[] = {
    {"conv1", "layers.0", "layers.1"},
    {"stage1_1_depthwise", "layers.3", "layers.4"},
    {"stage1_1_project", "layers.6", "layers.7"},
    {R"(stage(\d)_(\d)_expand)", "layers.{1+6}.{2-1}.layers.0", "layers.{1+6}.{2-1}.layers.1"},
    {R"(stage(\d)_(\d)_depthwise)", "layers.{1+6}.{2-1}.layers.3", "layers.{1+6}.{2-1}.layers.4"},
    {R"(stage(\d)_(\d)_project)", "layers.{1+6}.{2-1}.layers.6", "layers.{1+6}.{2-1}.layers.7"},
    {"conv_last", "layers.14", "layers.15"},
    {"fc", "classifier.1"}};

constexpr Rule efficientnet[] = {
    {"conv1", "features.0.0", "features.0.1"},
    {"stage1_1_depthwise", "features.1.0.block.0.0", "features.1.0.block.0.1"},
    {"stage1_1_squeeze", "features.1.0.block.1.fc1"},
    {"stage1_1_excite", "features.1.0.block.1.fc2"},
    {"stage1_1_project", "features.1.0.block.2.0", "features.1.0.block.2.1"},
    {R"(stage(\d)_(\d)_expand)", "features.{1}.{2-1}.block.0.0", "features.{1}.{2-1}.block.0.1"},
    {R"(stage(\d)_(\d)_depthwise)", "features.{1}.{2-1}.block.1.0", "features.{1}.{2-1}.block.1.1"},
    {R"(stage(\d)_(\d)_squeeze)", "features.{1}.{2-1}.block.2.fc1"},
    {R"(stage(\d)_(\d)_excite)", "features.{1}.{2-1}.block.2.fc2"},
    {R"(stage(\d)_(\d)_project)", "features.{1}.{2-1}.block.3.0", "features.{1}.{2-1}.block.3.1"},
    {"conv_last", "features.8.0", "features.8.1"},
    {"fc", "classifier.1"}};

constexpr Rule regnet[] = {
    {"conv1", "stem.0", "stem.1"},
    {R"(stage(\d)_(\d{1,4})_shortcut)", "trunk_output.block{1}.block{1}-{2-1}.proj.0",
     "trunk_output.block{1}.block{1}-{2-1}.proj.1"},
    {R"(stage(\d)_(\d{1,4})_conv1)", "trunk_output.block{1}.block{1}-{2-1}.f.a.0",
     "trunk_output.block{1}.block{1}-{2-1}.f.a.1"},
    {R"(stage(\d)_(\d{1,4})_conv2)", "trunk_output.block{1}.block{1}-{2-1}.f.b.0",
     "trunk_output.block{1}.block{1}-{2-1}.f.b.1"},
    {R"(stage(\d)_(\d{1,4})_squeeze)", "trunk_output.block{1}.block{1}-{2-1}.f.se.fc1"},
    {R"(stage(\d)_(\d{1,4})_excite)", "trunk_output.block{1}.block{1}-{2-1}.f.se.fc2"},
    {R"(stage(\d)_(\d{1,4})_conv3)", "trunk_output.block{1}.block{1}-{2-1}.f.c.0",
     "trunk_output.block{1}.block{1}-{2-1}.f.c.1"},
    {"fc", "fc"}};

constexpr Rule shufflenet_v2[] = {
    {"conv([15])", "conv{1}.0", "conv{1}.1"},
    {R"(stage(\d)_1_left1)", "stage{1}.0.branch1.0", "stage{1}.0.branch1.1"},
    {R"(stage(\d)_1_left2)", "stage{1}.0.branch1.2", "stage{1}.0.branch1.3"},
    {R"(stage(\d)_(\d)_conv1)", "stage{1}.{2-1}.branch2.0", "stage{1}.{2-1}.branch2.1"},
    {R"(stage(\d)_(\d)_conv2)", "stage{1}.{2-1}.branch2.3", "stage{1}.{2-1}.branch2.4"},
    {R"(stage(\d)_(\d)_conv3)", "stage{1}.{2-1}.branch2.5", "stage{1}.{2-1}.branch2.6"},
    {"fc", "fc"}};

struct Family {
  std::string_view name;
  std::span<const Rule> rules;                           // the first that fits
  std::array<std::string_view, 2> of_other_layers = {};  // beginnings of tensors' names
};

// The order counts: nets of the later ones of inverted residuals look like those of the earlier ones.
constexpr Family families[] = {
    {"alexnet", alexnet},
    {"vgg", vgg},
    {"resnet", resnet},
    {"densenet", densenet},
    {"squeezenet", squeezenet},
    {"googlenet", googlenet, {"aux1.", "aux2."}},
    {"inception", inception, {"AuxLogits."}},
    {"mobilenet_v2", mobilenet_v2},
    {"mnasnet", mnasnet},
    {"efficientnet", efficientnet},
    {"regnet", regnet},
    {"shufflenet_v2", shufflenet_v2},
};

// Where a layer is in its net, as torchvision counts.
struct Place {
  int layers_before = 0, block = 0;
};

std::string without(const std::string& name, std::string_view ending) {
  return name.ends_with(ending) ? name.substr(0, name.size() - ending.size()) : name;
}

// By the name of each layer of products, or of a batch norm without one.
std::map<std::string, Place> places(const Network& network) {
  constexpr std::array<std::string_view, 5> numbered = {"Convolution", "BatchNorm", "ReLU", "Pooling",
                                                        "Clip"};
  std::map<std::string, Place> found;
  std::set<std::string> blocks;
  int layers = 0;
  for (const Network::Node& node : network.nodes()) {
    if (node.parameters.empty() && std::ranges::find(numbered, node.layer->type()) == numbered.end())
      continue;
    const std::string unit = without(without(node.name, "_bn"), "_scale");
    if (!node.parameters.empty() && unit.starts_with("stage")) blocks.insert(unit.substr(0, unit.rfind('_')));
    found.try_emplace(unit, Place{layers, static_cast<int>(blocks.size())});
    if (std::ranges::find(numbered, node.layer->type()) != numbered.end()) ++layers;
  }
  return found;
}

// What braces stand for: "#", "@", "2", "2-1", "#+1".
std::string filled(std::string_view braces, const std::smatch& groups, const Place& place) {
  const size_t sign = braces.find_first_of("+-");
  const std::string_view what = braces.substr(0, sign);
  const std::string text = what == "#"   ? std::to_string(place.layers_before)
                           : what == "@" ? std::to_string(place.block)
                                         : groups[static_cast<size_t>(what[0] - '0')].str();
  if (sign == std::string_view::npos) return text;
  const int by = braces[sign + 1] - '0';
  return std::to_string(std::stoi(text) + (braces[sign] == '+' ? by : -by));
}

std::string filled_in(std::string_view pattern, const std::smatch& groups, const Place& place) {
  std::string name;
  while (!pattern.empty()) {
    const size_t open = pattern.find('{');
    name += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = pattern.find('}');
    name += filled(pattern.substr(open + 1, close - open - 1), groups, place);
    pattern.remove_prefix(close + 1);
  }
  return name;
}

// A family's rules, ready for use.
std::vector<std::pair<std::regex, Rule>> compiled(const Family& family) {
  std::vector<std::pair<std::regex, Rule>> rules;
  for (const Rule& rule : family.rules) rules.emplace_back(std::regex(rule.layer), rule);
  return rules;
}

// The module of a layer with parameters; nothing: no rule has it.
std::optional<std::string> module_of(const std::vector<std::pair<std::regex, Rule>>& rules,
                                     const Network::Node& node, const std::map<std::string, Place>& places) {
  const bool is_norm = node.layer->type() == "BatchNorm" || node.layer->type() == "Scale";
  const std::string unit = is_norm ? without(without(node.name, "_bn"), "_scale") : node.name;
  for (const auto& [layer, rule] : rules) {
    std::smatch groups;
    if (!std::regex_match(unit, groups, layer)) continue;
    const std::string_view pattern = is_norm ? rule.norm : rule.product;
    if (pattern.empty()) return {};
    const auto place = places.find(unit);
    return place == places.end() ? "" : filled_in(pattern, groups, place->second);
  }
  return {};
}

std::string tensor_name(const std::string& module, std::string_view type, std::string_view role) {
  if (type != "BatchNorm") return fmt::format("{}.{}", module, role);
  if (role == "factor") return "";
  return fmt::format("{}.{}", module, role == "mean" ? "running_mean" : "running_var");
}

// Nothing: the net is of another family.
std::optional<TorchvisionNames> names_in(const Family& family, const Network& network,
                                         const std::map<std::string, Place>& places) {
  TorchvisionNames names{std::string(family.name), {}, {}};
  for (std::string_view beginning : family.of_other_layers)
    if (!beginning.empty()) names.of_other_layers.emplace_back(beginning);
  const auto rules = compiled(family);
  for (const Network::Parameter& parameter : network.parameters()) {
    const Network::Node& node = network.nodes()[parameter.declared_by];
    const auto module = module_of(rules, node, places);
    if (!module) return {};
    names.of_parameter.push_back(tensor_name(*module, node.layer->type(), parameter.spec.role));
  }
  return names;
}

std::string known_families() {
  std::string text;
  for (const Family& family : families) text += (text.empty() ? "" : ", ") + std::string(family.name);
  return text;
}

void refuse_left_over(const Network& network, const TorchvisionNames& names, const std::string& tensor,
                      const std::string& path) {
  const auto begins = [&](const std::string& beginning) { return tensor.starts_with(beginning); };
  if (std::ranges::any_of(names.of_other_layers, begins)) return;
  throw UserError(fmt::format("{}: tensor '{}' is of no layer of net '{}'; give the weights of this net",
                              path, tensor, network.name()));
}

}  // namespace

TorchvisionNames torchvision_names(const Network& network) {
  const std::map<std::string, Place> found = places(network);
  if (!network.parameters().empty())
    for (const Family& family : families)
      if (auto names = names_in(family, network, found)) return std::move(*names);
  throw UserError(fmt::format(
      "net '{}': its layers are not called as in a net of the model zoo that torchvision has, too ({}); "
      "convert such a net's weights, and train other nets from them by the names of layers",
      network.name(), known_families()));
}

FromTorchvision from_torchvision(const Network& network, const TorchvisionNames& names,
                                 const SafetensorsFile& file, const std::string& path) {
  FromTorchvision result;
  std::set<std::string> used;
  for (ParameterIndex p : indices(network.parameters())) {
    const std::string& name = names.of_parameter[p];
    const Shape& shape = network.parameters()[p].spec.shape;
    if (name.empty()) {  // running statistics as they are
      result.values.push_back({1});
      continue;
    }
    const auto* tensor = file.find(name);
    if (tensor == nullptr)
      throw UserError(fmt::format("{}: has no tensor '{}' of float32, which is parameter '{}' of net '{}'",
                                  path, name, network.parameters()[p].name, network.name()));
    if (tensor->shape != shape)
      throw UserError(fmt::format(
          "{}: tensor '{}' has the shape {}, parameter '{}' of net '{}' {}; give the weights "
          "of this net",
          path, name, tensor->shape.text(), network.parameters()[p].name, network.name(), shape.text()));
    used.insert(name);
    result.values.push_back(tensor->values);
  }
  for (const auto& tensor : file.tensors) {
    if (used.contains(tensor.name)) continue;
    refuse_left_over(network, names, tensor.name, path);
    result.passed_over.push_back(tensor.name);
  }
  return result;
}

SafetensorsFile to_torchvision(const Network& network, const TorchvisionNames& names,
                               const IndexedVector<ParameterIndex, std::vector<float>>& values) {
  SafetensorsFile file{{}, {{"format", "pt"}}};
  for (const Network::Node& node : network.nodes()) {
    if (node.parameters.empty()) continue;
    const bool statistics = node.layer->type() == "BatchNorm";
    const float factor = statistics ? values[node.parameters[2]][0] : 1;
    for (ParameterIndex p : node.parameters) {
      if (names.of_parameter[p].empty()) continue;
      std::vector<float> tensor = values[p];
      if (statistics)  // Caffe's are sums; of nothing yet: zeros
        for (float& value : tensor) value = factor == 0 ? 0 : value / factor;
      file.tensors.push_back({names.of_parameter[p], network.parameters()[p].spec.shape, std::move(tensor)});
    }
  }
  return file;
}

}  // namespace cortado
