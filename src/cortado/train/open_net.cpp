#include "cortado/train/open_net.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/spoken_order.h"

namespace cortado {

CompileOptions open_compile_options(CompileOptions options) {
  options.keep_tensors = true;
  options.passing_gradients = false;
  options.fuse = false;
  return options;
}

OpenNet::OpenNet(Executor& executor, ParameterStore& parameters, OpenSources& sources)
    : executor_(executor),
      parameters_(parameters),
      sources_(sources),
      gradients_(executor.network().parameters().size()) {
  for (TensorIndex t : indices(network().tensors())) {
    const Network::Tensor& tensor = network().tensors()[t];
    if (!tensor.named) continue;
    const BufferIndex buffer = executor_.program().tensor_buffer(t);
    if (buffer && executor_.program().buffers[buffer].type != ElementType::f32)
      throw UserError(fmt::format(
          "blob '{}' is bf16; values are open in f32 alone: leave the precision at f32", tensor.name));
    Blob& blob = blobs_[tensor.name];
    if (blob.tensors.empty()) names_.push_back(tensor.name);
    blob.tensors.push_back(t);
    blob.value = blob.gradient = t;
    if (!is_source(t)) executor_.set_tensor(t, std::vector<float>(static_cast<size_t>(tensor.shape.size())));
  }
  order_backward();
}

bool OpenNet::is_source(TensorIndex tensor) const {
  return network().nodes()[network().tensors()[tensor].producer].layer->is_source();
}

// The sum of a tensor's gradients is of the layer that makes the tensor; a copy of a gradient, of the layer
// whose backward pass is next; the sum of a parameter's gradients, of the layer before it.
void OpenNet::order_backward() {
  const Program& program = executor_.program();
  std::map<BufferIndex, NodeIndex> makers;
  for (TensorIndex t : indices(network().tensors()))
    if (const BufferIndex gradient = program.gradient_buffer(t))
      makers[gradient] = network().tensors()[t].producer;
  std::vector<StepIndex> copies;
  NodeIndex node;
  for (StepIndex s(program.forward_end); s < program.steps.end_index(); ++s) {
    const Step& step = program.steps[s];
    if (step.is<steps::Accumulate>()) {
      const auto maker = makers.find(step.writes[0].buffer);
      if (maker == makers.end())
        copies.push_back(s);
      else
        backward_.emplace_back(s, maker->second);
    }
    if (step.is<steps::AccumulateParameter>()) backward_.emplace_back(s, node);
    if (!step.is<steps::Compute>()) continue;
    node = program.works[step.work()].nodes.front();
    for (const StepIndex copy : copies) backward_.emplace_back(copy, node);
    copies.clear();
    backward_.emplace_back(s, node);
  }
}

// The gradient of a loss is its weight, that of other tensors zero, until somebody writes another or computes
// it. Memory of gradients is touched from here on.
void OpenNet::begin_gradients() {
  if (has_begun_) return;
  has_begun_ = true;
  executor_.clear_gradients();
  std::vector<StepIndex> seeds;
  for (StepIndex s : indices(executor_.program().steps))
    if (executor_.program().steps[s].is<steps::Seed>()) seeds.push_back(s);
  executor_.run_steps(seeds);
}

double OpenNet::forward(NodeIndex first, NodeIndex last) {
  parameters_.refresh();
  const Program& program = executor_.program();
  std::set<std::string> loaded;
  for (NodeIndex n = first; n <= last; ++n)
    if (network().nodes()[n].layer->is_source()) loaded.insert(network().nodes()[n].name);
  std::vector<StepIndex> run;
  for (StepIndex s(0); s < StepIndex(program.forward_end); ++s) {
    const Step& step = program.steps[s];
    if (!step.work()) continue;
    const Work& work = program.works[step.work()];
    const NodeIndex node = program.placement->operations[work.operations.front()].node;
    if (step.is<steps::Load>() || (node && node >= first && node <= last)) run.push_back(s);
  }
  if (first == NodeIndex(0)) ++passes_;
  has_inputs_ = true;
  const OpenSources::Advance advance(sources_, loaded);
  executor_.run_steps(run, passes_);
  double loss = 0;
  for (NodeIndex n = first; n <= last; ++n) {
    const Network::Node& node = network().nodes()[n];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Network::Tensor& tensor = network().tensors()[node.outputs[i]];
      if (tensor.named) blobs_.at(tensor.name).value = node.outputs[i];
      if (node.loss_weights[i] == 0) continue;
      for (float value : executor_.tensor(node.outputs[i])) loss += node.loss_weights[i] * value;
    }
  }
  return loss;
}

// Whether the step sums the gradient of an output of the layer over its consumers, which are not run.
bool OpenNet::starts_at(const Step& step, NodeIndex node) const {
  if (!step.is<steps::Accumulate>()) return false;
  return std::ranges::any_of(network().nodes()[node].outputs, [&](TensorIndex output) {
    return executor_.program().gradient_buffer(output) == step.writes[0].buffer;
  });
}

// Before a first forward pass: kernels of backward passes read inputs, too.
void OpenNet::read_inputs() {
  if (has_inputs_) return;
  has_inputs_ = true;
  std::vector<StepIndex> loads;
  for (StepIndex s(0); s < StepIndex(executor_.program().forward_end); ++s)
    if (executor_.program().steps[s].is<steps::Load>()) loads.push_back(s);
  const OpenSources::Advance none(sources_, {});
  executor_.run_steps(loads, passes_);
}

void OpenNet::backward(NodeIndex first, NodeIndex last) {
  read_inputs();
  keep_gradients();
  begin_gradients();
  std::vector<StepIndex> run;
  std::set<ParameterIndex> touched;
  for (const auto& [s, node] : backward_) {
    const Step& step = executor_.program().steps[s];
    if (node > first || node < last || (node == first && starts_at(step, first))) continue;
    run.push_back(s);
    for (ParameterIndex p : network().nodes()[node].parameters)
      if (entry(p).gradient != nullptr) touched.insert(p);
  }
  for (ParameterIndex p : touched) std::fill_n(entry(p).gradient, entry(p).elements, 0.F);
  executor_.run_steps(run);
  for (ParameterIndex p : touched) {
    std::vector<float>& sum = kept_gradient(p);
    std::vector<float> added(sum.size());
    parameters_.to_canonical(executor_.parameter_entries()[p], entry(p).gradient, added.data());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += added[i];
  }
  for (NodeIndex n = first;; --n) {
    const Network::Node& node = network().nodes()[n];
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (node.propagate_down[i])
        blobs_.at(network().tensors()[node.inputs[i]].name).gradient = node.inputs[i];
    if (n == last) break;
  }
}

std::vector<std::string> OpenNet::source_blobs() const {
  std::vector<std::string> names;
  for (const auto& [name, blob] : blobs_)
    if (is_source(blob.tensors.front())) names.push_back(name);
  return names;
}

const Shape& OpenNet::shape(const std::string& blob) const {
  return network().tensors()[blobs_.at(blob).tensors.back()].shape;
}

bool OpenNet::has_gradient(const std::string& blob) const {
  return std::ranges::any_of(blobs_.at(blob).tensors, [&](TensorIndex tensor) {
    return static_cast<bool>(executor_.program().gradient_buffer(tensor));
  });
}

std::vector<float> OpenNet::values(const std::string& blob) {
  const TensorIndex tensor = blobs_.at(blob).value;
  if (!is_source(tensor)) return executor_.canonical_tensor(tensor);
  const Network::Tensor& of = network().tensors()[tensor];
  std::vector<float> values(static_cast<size_t>(of.shape.size()));
  to_spoken(of.shape, sources_.values(network().nodes()[of.producer].name, of.producer_output).data(),
            values.data());
  return values;
}

void OpenNet::set_values(const std::string& blob, std::span<const float> values) {
  for (const TensorIndex tensor : blobs_.at(blob).tensors) {
    const Network::Tensor& of = network().tensors()[tensor];
    ensure(std::ssize(values) == of.shape.size(), "a blob of another size");
    if (is_source(tensor))
      from_spoken(of.shape, values.data(),
                  sources_.values(network().nodes()[of.producer].name, of.producer_output).data());
    else
      executor_.set_tensor(tensor, values);
  }
}

std::vector<float> OpenNet::gradient(const std::string& blob) {
  begin_gradients();
  std::vector<float> values = executor_.canonical_gradient(blobs_.at(blob).gradient);
  values.resize(static_cast<size_t>(shape(blob).size()));
  return values;
}

void OpenNet::set_gradient(const std::string& blob, std::span<const float> values) {
  begin_gradients();
  for (const TensorIndex tensor : blobs_.at(blob).tensors)
    if (executor_.program().gradient_buffer(tensor)) executor_.set_gradient(tensor, values);
}

const ParameterStore::Entry& OpenNet::entry(ParameterIndex parameter) const {
  return parameters_.entries()[executor_.parameter_entries()[parameter]];
}

std::vector<float> OpenNet::parameter(ParameterIndex parameter) const {
  return parameters_.canonical(parameters_.original(executor_.parameter_entries()[parameter]));
}

void OpenNet::set_parameter(ParameterIndex parameter, std::span<const float> values) {
  parameters_.set(parameters_.original(executor_.parameter_entries()[parameter]), values);
  parameters_.refresh();
}

std::vector<float>& OpenNet::kept_gradient(ParameterIndex parameter) {
  std::vector<float>& kept = gradients_[parameter];
  kept.resize(static_cast<size_t>(entry(parameter).canonical_size()));
  return kept;
}

void OpenNet::keep_gradients() {
  if (!in_store_) return;
  in_store_ = false;
  for (ParameterIndex p : indices(gradients_))
    if (entry(p).gradient != nullptr)
      parameters_.to_canonical(executor_.parameter_entries()[p], entry(p).gradient, kept_gradient(p).data());
}

std::vector<float> OpenNet::parameter_gradient(ParameterIndex parameter) {
  keep_gradients();
  return kept_gradient(parameter);
}

void OpenNet::set_parameter_gradient(ParameterIndex parameter, std::span<const float> values) {
  keep_gradients();
  std::ranges::copy(values, kept_gradient(parameter).begin());
}

void OpenNet::clear_parameter_gradients() {
  in_store_ = false;
  for (std::vector<float>& gradient : gradients_) std::ranges::fill(gradient, 0.F);
}

void OpenNet::ran() {
  for (auto& [name, blob] : blobs_) {
    blob.value = blob.tensors.back();
    blob.gradient = blob.tensors.front();
  }
  in_store_ = has_begun_ = true;
}

void OpenNet::hand_over_gradients() {
  if (in_store_) return;
  for (ParameterIndex p : indices(gradients_))
    if (entry(p).gradient != nullptr)
      parameters_.from_canonical(executor_.parameter_entries()[p], kept_gradient(p).data(),
                                 entry(p).gradient);
}

}  // namespace cortado
