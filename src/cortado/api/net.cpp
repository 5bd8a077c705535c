#include "cortado/api/net.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/api/impl/net.h"
#include "cortado/api/impl/network.h"
#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/layers/source.h"
#include "cortado/net/weights.h"
#include "cortado/train/load_weights.h"

namespace cortado::api {
namespace {

int threads_of(int threads) {
  if (threads < 0)
    throw UserError(fmt::format("threads {}: give 1 or more; 0: as many as OpenMP gives", threads));
  return threads > 0 ? threads : compute_threads();
}

const Source* source_of(const cortado::Network::Node& node) {
  return dynamic_cast<const Source*>(node.layer.get());
}

Tensor tensor_of(const Shape& shape, std::vector<float> values) { return {shape, std::move(values)}; }

// Gives a top of an Input layer another shape. A shape for all tops becomes one for each.
void set_input_shape(caffe::LayerParameter& layer, int top, const Shape& shape) {
  caffe::InputParameter& input = *layer.mutable_input_param();
  while (input.shape_size() > 0 && input.shape_size() < layer.top_size())
    *input.add_shape() = caffe::BlobShape(input.shape(0));
  caffe::BlobShape& of = *input.mutable_shape(top);
  of.clear_dim();
  for (int64_t extent : shape) of.add_dim(extent);
}

// Gives `blob` another shape in every Input layer that makes it. Returns whether there is one.
bool reshape_input(NetFile& file, const std::string& blob, const Shape& shape) {
  bool found = false;
  for (caffe::LayerParameter& layer : *file.net.mutable_layer()) {
    if (layer.type() != "Input") continue;
    for (int top = 0; top < layer.top_size(); ++top) {
      if (layer.top(top) != blob) continue;
      set_input_shape(layer, top, shape);
      found = true;
    }
  }
  return found;
}

// One object for each layer, however often the net is made anew.
MakeUserLayer kept_by_name(const MakeUserLayer& make) {
  if (!make) return {};
  const auto kept = std::make_shared<std::map<std::string, std::shared_ptr<UserLayer>>>();
  return [make, kept](const UserLayerText& text) {
    std::shared_ptr<UserLayer>& layer = (*kept)[text.name];
    if (!layer) layer = make(text);
    return layer;
  };
}

}  // namespace

Net::Impl::Impl(const Network& of, const Data& said, const NetOptions& asked)
    : options(asked),
      file(of.impl().file),
      state(of.impl().state),
      data(said),
      network(of),
      phase(of.impl().options.phase) {
  options.threads = threads_of(options.threads);
  file.user_layers = kept_by_name(file.user_layers);
  if (file.net.layer_size() == 0)
    throw UserError(
        "a net is made of a network that was read from a file or a text; this one is a trainer's");
  if (file.precision != cortado::Precision::f32)
    throw UserError(fmt::format("{}: a net computes in f32; make the network without bf16", file.path));
  take(make(file, std::make_shared<ParameterStore>()));
}

Net::Impl::Impl(OpenNet& of, const LoadedNetwork& loaded, Phase in, int threads)
    : open(&of), network(std::make_shared<const Network::Impl>(loaded)), phase(in) {
  options.threads = threads;
}

Net::Impl::Parts Net::Impl::make(const NetFile& net, std::shared_ptr<ParameterStore> store) const {
  const ComputeThreads threads(options.threads);
  Parts made{.readers = std::make_unique<DataReaders>(data),
             .data = nullptr,
             .sources = nullptr,
             .parameters = std::move(store),
             .executor = nullptr,
             .open = nullptr};
  made.data = std::make_unique<DataNetwork>(
      net, state,
      DataNetwork::Options{.seed = options.seed,
                           .reader_threads = options.reader_threads,
                           .learns = options.gradients,
                           .gradients_from_outputs = options.gradients && net.net.force_backward(),
                           .open_reader = made.readers->opener(),
                           .notice = options.notice});
  made.readers->check_used();
  made.sources = std::make_unique<OpenSources>(*made.data);
  const cortado::Network& built = made.data->network();
  made.executor = std::make_unique<Executor>(
      built, compile(built, open_compile_options({.kernels = {.kernels = options.kernels}})),
      *made.parameters, made.sources->sources(), ExecutorOptions{.seed = options.seed});
  made.open = std::make_unique<OpenNet>(*made.executor, *made.parameters, *made.sources);
  return made;
}

void Net::Impl::carry_over(Parts& made) {
  for (const std::string& blob : open->source_blobs())
    if (made.open->shape(blob) == open->shape(blob)) made.open->set_values(blob, open->values(blob));
  made.data->seek(parts.data->positions(), 0);
  made.sources->take_feeds(*parts.sources);
}

void Net::Impl::take(Parts made) {
  open = made.open.get();
  network = Network(std::make_shared<const Network::Impl>(made.data->loaded()));
  // The old parts end in the order of their members' references: what refers goes first.
  parts.open.reset();
  parts.executor.reset();
  parts.sources.reset();
  parts = std::move(made);
}

void Net::Impl::require_own(const char* what) const {
  if (!parts.open)
    throw UserError(fmt::format("net '{}' is a trainer's: it cannot {}; make a net of its own",
                                open->network().name(), what));
}

std::string Net::Impl::checked(const std::string& blob) const {
  if (open->has_blob(blob)) return blob;
  const std::vector<std::string> names = open->blobs();
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw UserError(
      fmt::format("net '{}' has no blob '{}'{}", open->network().name(), blob, did_you_mean(blob, known)));
}

void Net::Impl::check_size(const std::string& what, size_t given, int64_t wanted) const {
  if (static_cast<int64_t>(given) == wanted) return;
  throw UserError(
      fmt::format("net '{}': {} has {} values; given {}", open->network().name(), what, wanted, given));
}

void Net::Impl::copy_out(const std::string& what, const Tensor& from, std::span<float> to) const {
  check_size(what, to.size(), std::ssize(from.values));
  std::ranges::copy(from.values, to.begin());
}

NodeIndex Net::Impl::layer(const std::string& name) const {
  const NodeIndex node = open->network().node(name);
  if (node) return node;
  std::vector<std::string_view> known;
  for (const auto& each : open->network().nodes()) known.push_back(each.name);
  throw UserError(
      fmt::format("net '{}' has no layer '{}'{}", open->network().name(), name, did_you_mean(name, known)));
}

NodeIndex Net::Impl::last_part(NodeIndex whole) const {
  NodeIndex last = whole;
  const auto& nodes = open->network().nodes();
  for (NodeIndex n : indices(nodes))
    if (nodes[n].part_of == nodes[whole].name) last = std::max(last, n);
  return last;
}

ParameterIndex Net::Impl::parameter(const std::string& name) const {
  return parameter_named(open->network(), name);
}

int64_t Net::Impl::size_of(ParameterIndex parameter) const {
  return open->network().parameters()[parameter].spec.shape.size();
}

Net::Net(const Network& network, const Data& data, const NetOptions& options)
    : impl_(std::make_unique<Impl>(network, data, options)) {}
Net::Net(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Net::Net(Net&&) noexcept = default;
Net& Net::operator=(Net&&) noexcept = default;
Net::~Net() = default;

const Network& Net::network() const { return impl_->network; }

Phase Net::phase() const { return impl_->phase; }

double Net::forward(const std::string& first, const std::string& last) {
  const ComputeThreads threads(impl_->options.threads);
  NodeIndex end = impl_->open->network().nodes().end_index();
  const NodeIndex from = first.empty() ? NodeIndex(0) : impl_->layer(first);
  return impl_->open->forward(from, last.empty() ? --end : impl_->last_part(impl_->layer(last)));
}

void Net::backward(const std::string& first, const std::string& last) {
  const ComputeThreads threads(impl_->options.threads);
  if (!impl_->open->network().learns())
    throw UserError(fmt::format("net '{}' has no gradients; make it with NetOptions::gradients",
                                impl_->open->network().name()));
  NodeIndex end = impl_->open->network().nodes().end_index();
  const NodeIndex from = first.empty() ? --end : impl_->last_part(impl_->layer(first));
  impl_->open->backward(from, last.empty() ? NodeIndex(0) : impl_->layer(last));
}

std::vector<std::string> Net::blobs() const { return impl_->open->blobs(); }

std::vector<std::string> Net::inputs() const {
  std::vector<std::string> names;
  const cortado::Network& net = impl_->open->network();
  for (const auto& node : net.nodes()) {
    const Source* source = source_of(node);
    if (source == nullptr || source->options().kind != SourceOptions::Kind::input) continue;
    for (TensorIndex output : node.outputs) names.push_back(net.tensors()[output].name);
  }
  return names;
}

std::vector<std::string> Net::outputs() const {
  std::vector<std::string> names;
  for (TensorIndex output : impl_->open->network().outputs())
    names.push_back(impl_->open->network().tensors()[output].name);
  return names;
}

Shape Net::shape(const std::string& blob) const { return shape_of(impl_->open->shape(impl_->checked(blob))); }

bool Net::has_gradient(const std::string& blob) const {
  return impl_->open->has_gradient(impl_->checked(blob));
}

Tensor Net::values(const std::string& blob) const {
  return tensor_of(shape(blob), impl_->open->values(blob));
}

void Net::values(const std::string& blob, std::span<float> to) const {
  impl_->copy_out("blob '" + blob + "'", values(blob), to);
}

void Net::set_values(const std::string& blob, std::span<const float> values) {
  impl_->check_size("blob '" + blob + "'", values.size(), impl_->open->shape(impl_->checked(blob)).size());
  impl_->open->set_values(blob, values);
}

Tensor Net::gradient(const std::string& blob) const {
  return tensor_of(shape(blob), impl_->open->gradient(blob));
}

void Net::gradient(const std::string& blob, std::span<float> to) const {
  impl_->copy_out("blob '" + blob + "'", gradient(blob), to);
}

void Net::set_gradient(const std::string& blob, std::span<const float> values) {
  impl_->check_size("blob '" + blob + "'", values.size(), impl_->open->shape(impl_->checked(blob)).size());
  impl_->open->set_gradient(blob, values);
}

Tensor Net::parameter(const std::string& name) const {
  const ParameterIndex index = impl_->parameter(name);
  return tensor_of(shape_of(impl_->open->network().parameters()[index].spec.shape),
                   impl_->open->parameter(index));
}

void Net::parameter(const std::string& name, std::span<float> to) const {
  impl_->copy_out("parameter '" + name + "'", parameter(name), to);
}

void Net::set_parameter(const std::string& name, std::span<const float> values) {
  const ParameterIndex index = impl_->parameter(name);
  impl_->check_size("parameter '" + name + "'", values.size(), impl_->size_of(index));
  impl_->open->set_parameter(index, values);
}

Tensor Net::parameter_gradient(const std::string& name) const {
  const ParameterIndex index = impl_->parameter(name);
  return tensor_of(shape_of(impl_->open->network().parameters()[index].spec.shape),
                   impl_->open->parameter_gradient(index));
}

void Net::parameter_gradient(const std::string& name, std::span<float> to) const {
  impl_->copy_out("parameter '" + name + "'", parameter_gradient(name), to);
}

void Net::set_parameter_gradient(const std::string& name, std::span<const float> values) {
  const ParameterIndex index = impl_->parameter(name);
  impl_->check_size("parameter '" + name + "'", values.size(), impl_->size_of(index));
  impl_->open->set_parameter_gradient(index, values);
}

void Net::clear_parameter_gradients() { impl_->open->clear_parameter_gradients(); }

void Net::reshape(const std::map<std::string, Shape>& inputs) {
  impl_->require_own("change its shapes");
  NetFile file = impl_->file;
  for (const auto& [blob, shape] : inputs) {
    const bool sane = std::ranges::all_of(shape, [](int64_t extent) { return extent >= 1; });
    if (!sane)
      throw UserError(fmt::format("{}: the new shape of '{}' has an extent below 1", file.path, blob));
    if (!reshape_input(file, impl_->checked(blob), shape))
      throw UserError(fmt::format(
          "{}: blob '{}' gets its shape from the layers before it; reshape what Input layers make", file.path,
          blob));
  }
  Impl::Parts made = impl_->make(file, impl_->parts.parameters);
  impl_->carry_over(made);
  impl_->take(std::move(made));
  impl_->file = std::move(file);
}

void Net::share_with(const Net& other) {
  if (&impl_->open->parameters() == &other.impl_->open->parameters()) return;
  impl_->require_own("take the parameters of another");
  // A trainer keeps its parameters itself: it outlives its nets, and this one.
  const std::shared_ptr<ParameterStore> store =
      other.impl_->parts.open
          ? other.impl_->parts.parameters
          : std::shared_ptr<ParameterStore>(std::shared_ptr<void>(), &other.impl_->open->parameters());
  const EntryIndex first = store->entries().end_index();
  Impl::Parts made = impl_->make(impl_->file, store);
  const auto& entries = made.executor->parameter_entries();
  for (ParameterIndex p : indices(entries))  // of layers that `other` has not
    if (entries[p] >= first && store->original(entries[p]) == entries[p])
      made.open->set_parameter(p, impl_->open->parameter(p));
  impl_->carry_over(made);
  impl_->take(std::move(made));
}

void Net::feed(const Data& data) {
  const cortado::Network& net = impl_->open->network();
  for (const std::string& layer : data.layers()) {
    const cortado::Network::Node& node = net.nodes()[impl_->layer(layer)];
    const Data::Source* source = data.find(layer, phase());
    if (source == nullptr) continue;
    if (!node.layer->is_source())
      throw UserError(fmt::format("data of layer '{}': it is no source layer", layer));
    ReaderOptions options{.phase = node.phase, .top_names = {}, .layer_name = layer};
    for (TensorIndex output : node.outputs) options.top_names.push_back(net.tensors()[output].name);
    impl_->open->sources().feed(layer, reader_of(*source, options, net.shapes_of(node.outputs)));
  }
}

PassedOver Net::load_weights(const std::string& path) {
  const cortado::PassedOver passed =
      cortado::load_weights(path, impl_->open->executor(), impl_->open->parameters());
  return {passed.of_network, passed.of_file};
}

void Net::save_weights(const std::string& path, WeightsFormat format) const {
  const cortado::Network& net = impl_->open->network();
  const auto values = [&](ParameterIndex parameter) { return impl_->open->parameter(parameter); };
  if (format == WeightsFormat::by_name)
    format = path.ends_with(".h5") ? WeightsFormat::hdf5 : WeightsFormat::caffemodel;
  if (format == WeightsFormat::hdf5)
    write_weights_hdf5(path, collect_weights(net, values, true));
  else
    write_caffemodel(path, impl_->network.impl().loaded().net, collect_weights(net, values));
}

}  // namespace cortado::api
