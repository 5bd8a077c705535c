#include "cortado/base/error.h"
#include "cortado/program/passes.h"

namespace cortado {
namespace {

bool may_follow(std::string_view before, std::string_view type) {
  if (type == "ReLU") {
    return before == "Convolution" || before == "InnerProduct" || before == "Scale" ||
           before == "BatchNorm" || before == "Eltwise";
  }
  return type == "Scale" && before == "BatchNorm";
}

// The longest chain of nodes from `first` on in which each layer's only output feeds only the next one.
std::vector<int> chain_from(const Network& network, int first) {
  std::vector<int> chain{first};
  while (true) {
    const auto& node = network.nodes()[chain.back()];
    if (node.outputs.size() != 1 || node.loss_weights[0] != 0) return chain;
    const auto& tensor = network.tensors()[node.outputs[0]];
    if (tensor.consumers.size() != 1) return chain;
    const auto& next = network.nodes()[tensor.consumers[0]];
    if (next.inputs.size() != 1 || next.outputs.size() != 1) return chain;
    if (!may_follow(node.layer->type(), next.layer->type())) return chain;
    if (next.propagate_down[0] != tensor.needs_gradient) return chain;
    chain.push_back(tensor.consumers[0]);
  }
}

Task chain_task(const Network& network, const std::vector<int>& chain) {
  Task task;
  task.phase = network.phase();
  const auto& first = network.nodes()[chain.front()];
  const auto& last = network.nodes()[chain.back()];
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    const Shape& shape = network.tensors()[first.inputs[i]].shape;
    task.inputs.push_back(shape);
    task.input_boxes.push_back(Box::whole(shape));
    task.input_gradients.push_back(first.propagate_down[i]);
  }
  for (int output : last.outputs) {
    const Shape& shape = network.tensors()[output].shape;
    task.outputs.push_back(shape);
    task.output_boxes.push_back(Box::whole(shape));
  }
  for (int index : chain) {
    const auto& node = network.nodes()[index];
    task.layers.push_back(node.layer);
    for (int parameter : node.parameters) {
      const auto& info = network.parameters()[parameter];
      task.parameter_gradients.push_back(info.wants_gradient);
      task.canonical_parameters |= info.users.size() > 1;
    }
  }
  return task;
}

Work make_work(const Network& network, const std::vector<int>& chain, Task task, const TaskFacts& facts) {
  Work work;
  work.task = std::move(task);
  work.facts = facts;
  work.nodes = chain;
  for (int index : chain) {
    const auto& parameters = network.nodes()[index].parameters;
    work.parameters.insert(work.parameters.end(), parameters.begin(), parameters.end());
  }
  work.partial_gradients.assign(work.parameters.size(), -1);
  return work;
}

Work place_chain(const Network& network, const TaskOracle& oracle, std::vector<int> chain) {
  for (; chain.size() > 1; chain.pop_back()) {
    Task task = chain_task(network, chain);
    if (auto facts = oracle(task)) return make_work(network, chain, std::move(task), *facts);
  }
  Task task = chain_task(network, chain);
  auto facts = oracle(task);
  ensure(facts.has_value(), "the oracle refused a single layer");
  return make_work(network, chain, std::move(task), *facts);
}

}  // namespace

void place_works(Program& program, const Network& network, const TaskOracle& oracle, bool fuse) {
  std::vector<bool> placed(network.nodes().size(), false);
  for (size_t index = 0; index < network.nodes().size(); ++index) {
    if (placed[index]) continue;
    int node = static_cast<int>(index);
    if (network.nodes()[index].layer->is_source()) {
      program.works.push_back(Work{.nodes = {node}});
      continue;
    }
    auto chain = fuse ? chain_from(network, node) : std::vector<int>{node};
    program.works.push_back(place_chain(network, oracle, chain));
    for (int member : program.works.back().nodes) placed[member] = true;
  }
}

}  // namespace cortado
