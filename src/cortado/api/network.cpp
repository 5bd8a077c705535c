#include "cortado/api/network.h"

#include <fmt/format.h>
#include <limits>

#include "cortado/api/impl/network.h"
#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/from_caffe.h"
#include "cortado/net/read_net.h"
#include "cortado/net/source_override.h"
#include "cortado/report/plan_report.h"
#include "cortado/train/load_without_data.h"

namespace cortado::api {
namespace {

constexpr int64_t most_samples = std::numeric_limits<int>::max();  // of a batch

Network network_of(NetFile file, const NetworkOptions& options) {
  const auto phase = options.phase == Phase::train ? cortado::Phase::train : cortado::Phase::test;
  caffe::NetState state = net_state(file, phase, options.level, options.stages);
  if (options.batch < 0 || options.batch > most_samples)
    throw UserError(fmt::format("{}: batch {}: give 1 to {}; 0: as the file says", file.path, options.batch,
                                most_samples));
  change_net(file, state,
             {.batch = static_cast<int>(options.batch),
              .sources = options.sources,
              .precision = precision_of(options.precision)});
  file.user_layers = options.user_layers;
  return Network(std::make_shared<const Network::Impl>(std::move(file), std::move(state), options));
}

}  // namespace

const LoadedNetwork& Network::Impl::loaded() const {
  std::lock_guard lock(building_);
  if (!built_) built_ = load_without_data(file, state, options.input_shape, static_cast<int>(options.batch));
  return *built_;
}

TensorIndex tensor_named(const cortado::Network& network, const std::string& name) {
  const TensorIndex index = network.tensor(name);
  if (index) return index;
  std::vector<std::string_view> known;
  for (const auto& tensor : network.tensors()) known.push_back(tensor.name);
  throw UserError(
      fmt::format("net '{}' has no tensor '{}'{}", network.name(), name, did_you_mean(name, known)));
}

ParameterIndex parameter_named(const cortado::Network& network, const std::string& name) {
  std::vector<std::string_view> known;
  for (ParameterIndex p : indices(network.parameters())) {
    if (network.parameters()[p].name == name) return p;
    known.push_back(network.parameters()[p].name);
  }
  throw UserError(
      fmt::format("net '{}' has no parameter '{}'{}", network.name(), name, did_you_mean(name, known)));
}

cortado::Precision precision_of(Precision precision) {
  return precision == Precision::bf16 ? cortado::Precision::bf16 : cortado::Precision::f32;
}

Shape shape_of(const cortado::Shape& shape) { return {shape.extents().begin(), shape.extents().end()}; }
cortado::Shape shape_of(const Shape& shape) { return cortado::Shape(std::span(shape)); }

std::vector<std::string> layer_types() {
  const std::vector<std::string_view> types = supported_layer_types();
  return {types.begin(), types.end()};
}

Network Network::from_file(const std::string& path, const NetworkOptions& options) {
  return network_of(read_net(path), options);
}

Network Network::from_text(const std::string& text, const NetworkOptions& options,
                           const std::string& name_in_errors) {
  return network_of(parse_net(text, name_in_errors), options);
}

std::vector<std::string> Network::warnings() const { return impl_->file.warnings; }

std::string Network::name() const { return impl_->network().name(); }

std::vector<Network::Layer> Network::layers() const {
  const cortado::Network& network = impl_->network();
  std::vector<Layer> layers;
  for (NodeIndex n : indices(network.nodes())) {
    const cortado::Network::Node& node = network.nodes()[n];
    Layer layer{.name = node.name,
                .type = std::string(node.layer->type()),
                .inputs = {},
                .outputs = {},
                .parameters = {},
                .loss_weights = node.loss_weights};
    for (TensorIndex input : node.inputs) layer.inputs.push_back(network.tensors()[input].name);
    for (TensorIndex output : node.outputs) layer.outputs.push_back(network.tensors()[output].name);
    for (ParameterIndex p : node.parameters) layer.parameters.push_back(network.parameters()[p].name);
    layer.forward_flops = network.forward_flops(n).count;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<NamedShape> Network::tensors() const {
  std::vector<NamedShape> tensors;
  for (const auto& tensor : impl_->network().tensors())
    tensors.push_back({tensor.name, shape_of(tensor.shape)});
  return tensors;
}

std::vector<NamedShape> Network::parameters() const {
  std::vector<NamedShape> parameters;
  for (const auto& parameter : impl_->network().parameters())
    parameters.push_back({parameter.name, shape_of(parameter.spec.shape)});
  return parameters;
}

Shape Network::tensor(const std::string& name) const {
  const cortado::Network& network = impl_->network();
  return shape_of(network.tensors()[tensor_named(network, name)].shape);
}

int64_t Network::parameter_count() const { return impl_->network().parameter_count(); }
int64_t Network::batch() const { return batch_of(impl_->network()); }

Network Network::with_batch(int64_t samples) const {
  NetFile file = impl_->file;
  NetworkOptions options = impl_->options;
  options.batch = samples;
  if (samples < 1 || samples > most_samples)
    throw UserError(fmt::format("{}: batch {}: give 1 to {}", file.path, samples, most_samples));
  override_batch(file.net, static_cast<int>(samples));
  return Network(std::make_shared<const Impl>(std::move(file), impl_->state, std::move(options)));
}

}  // namespace cortado::api
