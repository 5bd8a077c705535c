#include <fmt/format.h>
#include <set>

#include "cortado/program/program.h"

namespace cortado {

std::string_view name_of(const Program& program, const Step& step) {
  if (!step.is<steps::Exchange>() || step.group().empty()) return name_of(step);
  return name_of(program.movement_of(step).pattern());
}

std::string layers_of(const Work& work, const Network& network) {
  using Kind = Placement::Operation::Kind;
  std::string name = work.kind == Kind::copy ? "to " : work.kind == Kind::sum ? "sum of " : "";
  if (work.nodes.empty()) return name + "report";
  if (work.backward_only)
    return (name.empty() ? "" : "to ") + network.nodes()[work.nodes[0]].name + " of all";
  if (name.empty()) {
    for (NodeIndex node : work.nodes) name += (name.empty() ? "" : "+") + network.nodes()[node].name;
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
  std::string text = network.parameters()[step.parameters()[0]].name;
  if (step.parameters().size() > 1) text += fmt::format(" and {} more", step.parameters().size() - 1);
  return text;
}

namespace {

std::string subject(const Program& program, const Network& network, const Step& step) {
  if (!step.parameters().empty()) return parameters_text(network, step);
  if (!step.work()) return "";
  return name_of(program.works[step.work()], network);
}

}  // namespace

namespace {

// "layer 'conv1'", and how many more have parameters in it.
std::string layers_text(const Network& network, const Step& step) {
  std::set<NodeIndex> layers;
  for (ParameterIndex parameter : step.parameters())
    layers.insert(network.parameters()[parameter].declared_by);
  const NodeIndex first = network.parameters()[step.parameters()[0]].declared_by;
  std::string text = fmt::format("layer '{}'", network.nodes()[first].name);
  if (layers.size() > 1) text += fmt::format(" and {} more", layers.size() - 1);
  return text;
}

}  // namespace

std::string spoken(const Program& program, const Network& network, const Step& step) {
  const std::string of = subject(program, network, step);
  const auto of_layers = [&](std::string_view what) {
    return fmt::format("{} of {}", what, layers_text(network, step));
  };
  const auto computing = [&](bool forward) {
    return fmt::format("layer '{}' {}", of, forward ? "forward" : "backward");
  };
  return std::visit(
      Overloaded{
          [&](const steps::Load&) { return fmt::format("the batch of layer '{}'", of); },
          [&](const steps::Compute& compute) {
            return compute.again ? fmt::format("layer '{}' forward, once more", of)
                                 : computing(is_forward(compute.pass));
          },
          [&](const steps::Barrier&) { return std::string("the end of the forward pass"); },
          [&](const steps::Seed&) { return std::string("the gradient of the loss"); },
          [&](const OneOf<steps::Accumulate, steps::AccumulateParameter> auto&) { return computing(false); },
          [&](const steps::Exchange& exchange) {
            return fmt::format("the {} exchange '{}'{}", exchange.backward ? "backward" : "forward", of,
                               exchange.again ? ", once more" : "");
          },
          [&](const steps::SumStatistics&) { return fmt::format("the sum of statistics of layer '{}'", of); },
          [&](const OneOf<steps::SumGradient, steps::ScatterGradient> auto&) {
            return of_layers("the sum of gradients");
          },
          [&](const steps::Update&) { return of_layers("the update"); },
          [&](const steps::GatherParameter&) { return of_layers("the gathering of parameters"); }},
      step.action);
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
  for (StepIndex index : indices(steps)) {
    const Step& step = steps[index];
    text += fmt::format("{:4} {} {:20} {}", index, step.lane == Lane::compute ? "compute" : "comm   ",
                        name_of(*this, step), subject(*this, network, step));
    list("reads", step.reads);
    list("writes", step.writes);
    for (StepIndex wait : step.waits) text += fmt::format("  waits {}", wait);
    for (StepIndex wait : step.waits_before) text += fmt::format("  waits {} of the iteration before", wait);
    text += "\n";
  }
  for (BufferIndex index : indices(buffers)) {
    const Buffer& buffer = buffers[index];
    const std::string released = buffer.again ? fmt::format(" but for ({},{}), then at {}", buffer.released,
                                                            buffer.again, buffer.offset_again)
                                              : "";
    text += fmt::format("buffer #{} {} {} bytes, steps [{},{}]{}, offset {}\n", index, buffer.name,
                        buffer.size.count, buffer.first_step, buffer.last_step, released, buffer.offset);
  }
  return text;
}

}  // namespace cortado
