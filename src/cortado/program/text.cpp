#include <fmt/format.h>
#include <set>

#include "cortado/program/program.h"

namespace cortado {

std::string_view name_of(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::load:
      return "load";
    case Step::Kind::forward:
      return "forward";
    case Step::Kind::barrier:
      return "barrier";
    case Step::Kind::seed:
      return "seed";
    case Step::Kind::backward_weights:
      return "backward-weights";
    case Step::Kind::backward:
      return "backward";
    case Step::Kind::accumulate:
      return "accumulate";
    case Step::Kind::accumulate_parameter:
      return "accumulate-parameter";
    case Step::Kind::forward_partial:
      return "forward-partial";
    case Step::Kind::backward_partial:
      return "backward-partial";
    case Step::Kind::exchange:
      return "exchange";
    case Step::Kind::sum_statistics:
      return "sum-statistics";
    case Step::Kind::sum_gradient:
      return "sum-gradient";
    case Step::Kind::scatter_gradient:
      return "scatter-gradient";
    case Step::Kind::update:
      return "update";
    case Step::Kind::gather_parameter:
      return "gather-parameter";
  }
  return "?";
}

std::string_view name_of(const Program& program, const Step& step) {
  if (step.kind != Step::Kind::exchange || step.group.empty()) return name_of(step.kind);
  return name_of(program.movement_of(step).pattern());
}

std::string layers_of(const Work& work, const Network& network) {
  using Kind = Placement::Operation::Kind;
  std::string name = work.kind == Kind::copy ? "to " : work.kind == Kind::sum ? "sum of " : "";
  if (work.nodes.empty()) return name + "report";
  if (work.backward_only)
    return (name.empty() ? "" : "to ") + network.nodes()[work.nodes[0]].name + " of all";
  if (name.empty()) {
    for (int node : work.nodes) name += (name.empty() ? "" : "+") + network.nodes()[node].name;
  } else {
    name += network.nodes()[work.nodes[0]].name;
  }
  return name;
}

std::string name_of(const Work& work, const Network& network) {
  const auto& [whole, number, count] = work.part;
  return layers_of(work, network) + (count > 1 ? fmt::format(" {}/{}", number + 1, count) : "");
}

std::string parameters_text(const Network& network, const Step& step) {
  std::string text = network.parameters()[step.parameters[0]].name;
  if (step.parameters.size() > 1) text += fmt::format(" and {} more", step.parameters.size() - 1);
  return text;
}

namespace {

std::string subject(const Program& program, const Network& network, const Step& step) {
  if (!step.parameters.empty()) return parameters_text(network, step);
  if (step.work < 0) return "";
  return name_of(program.works[step.work], network);
}

}  // namespace

namespace {

// "layer 'conv1'", and how many more have parameters in it.
std::string layers_text(const Network& network, const Step& step) {
  std::set<int> owners;
  for (int parameter : step.parameters) owners.insert(network.parameters()[parameter].owner);
  const int first = network.parameters()[step.parameters[0]].owner;
  std::string text = fmt::format("layer '{}'", network.nodes()[first].name);
  if (owners.size() > 1) text += fmt::format(" and {} more", owners.size() - 1);
  return text;
}

}  // namespace

std::string spoken(const Program& program, const Network& network, const Step& step) {
  using Kind = Step::Kind;
  const std::string of = subject(program, network, step);
  const bool forward = step.kind == Kind::forward || step.kind == Kind::forward_partial;
  switch (step.kind) {
    case Kind::load:
      return fmt::format("the batch of layer '{}'", of);
    case Kind::exchange:
      return fmt::format("the {} exchange '{}'", step.backward ? "backward" : "forward", of);
    case Kind::sum_statistics:
      return fmt::format("the sum of statistics of layer '{}'", of);
    case Kind::sum_gradient:
    case Kind::scatter_gradient:
      return "the sum of gradients of " + layers_text(network, step);
    case Kind::update:
      return "the update of " + layers_text(network, step);
    case Kind::gather_parameter:
      return "the gathering of parameters of " + layers_text(network, step);
    case Kind::barrier:
      return "the end of the forward pass";
    case Kind::seed:
      return "the gradient of the loss";
    default:
      return fmt::format("layer '{}' {}", of, forward ? "forward" : "backward");
  }
}

std::string Program::text(const Network& network) const {
  std::string text;
  auto list = [&](std::string_view title, const std::vector<View>& views) {
    if (views.empty()) return;
    text += fmt::format("  {}", title);
    for (const View& view : views) {
      text += fmt::format(" {}#{}", buffers[view.buffer].name, view.buffer);
      if (view != whole(view.buffer)) text += fmt::format("[{},{})", view.bytes.begin, view.bytes.end);
    }
  };
  for (size_t index = 0; index < steps.size(); ++index) {
    const Step& step = steps[index];
    text += fmt::format("{:4} {} {:20} {}", index, step.lane == Lane::compute ? "compute" : "comm   ",
                        name_of(*this, step), subject(*this, network, step));
    list("reads", step.reads);
    list("writes", step.writes);
    for (int wait : step.waits) text += fmt::format("  waits {}", wait);
    for (int wait : step.waits_before) text += fmt::format("  waits {} of the iteration before", wait);
    text += "\n";
  }
  for (size_t index = 0; index < buffers.size(); ++index) {
    const Buffer& buffer = buffers[index];
    text += fmt::format("buffer #{} {} {} bytes, steps [{},{}], offset {}\n", index, buffer.name,
                        buffer.size.count, buffer.first_step, buffer.last_step, buffer.offset);
  }
  return text;
}

}  // namespace cortado
