#include <algorithm>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

Bytes bytes_of(const Shape& shape) { return {shape.size() * static_cast<int64_t>(sizeof(float))}; }

// True when `work` may write its output over input 0: nobody reads that value later, forward or backward.
bool may_overwrite_input(const Program& program, const Network& network, const std::vector<int>& work_of_node,
                         int index) {
  const Work& work = program.works[index];
  if (!work.facts.in_place || work.facts.backward_reads_inputs) return false;
  const auto& tensor = network.tensors()[network.nodes()[work.nodes.front()].inputs[0]];
  const auto& output = network.tensors()[network.nodes()[work.nodes.back()].outputs[0]];
  if (tensor.shape.size() != output.shape.size()) return false;
  if (program.buffers[work.inputs[0]].kind == Buffer::Kind::batch) return false;
  const auto& producer = program.works[work_of_node[tensor.producer]];
  if (producer.facts.backward_reads_outputs && producer.task.has_backward()) return false;
  const auto& weights = network.nodes()[tensor.producer].loss_weights;
  if (weights[tensor.producer_output] != 0) return false;
  return std::ranges::all_of(tensor.consumers, [&](int node) {
    int other = work_of_node[node];
    if (other == index) return true;
    const Work& reader = program.works[other];
    return other < index && !(reader.facts.backward_reads_inputs && reader.task.has_backward());
  });
}

int new_buffer(Program& program, std::string name, Buffer::Kind kind, Bytes size) {
  program.buffers.push_back({std::move(name), kind, size, -1, -1, -1});
  return static_cast<int>(program.buffers.size()) - 1;
}

void place_load(Program& program, const Network& network, int index) {
  Work& work = program.works[index];
  for (int tensor : network.nodes()[work.nodes[0]].outputs) {
    const auto& info = network.tensors()[tensor];
    int buffer = new_buffer(program, info.name, Buffer::Kind::batch, bytes_of(info.shape));
    program.tensor_buffers[tensor] = buffer;
    work.outputs.push_back(buffer);
  }
  program.steps.push_back(
      {.kind = Step::Kind::load, .lane = Lane::communication, .work = index, .writes = work.outputs});
}

void place_outputs(Program& program, const Network& network, const std::vector<int>& work_of_node,
                   int index) {
  Work& work = program.works[index];
  const auto& outputs = network.nodes()[work.nodes.back()].outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& info = network.tensors()[outputs[i]];
    bool over_input = i == 0 && may_overwrite_input(program, network, work_of_node, index);
    int buffer = over_input ? work.inputs[0]
                            : new_buffer(program, info.name, Buffer::Kind::activation, bytes_of(info.shape));
    program.tensor_buffers[outputs[i]] = buffer;
    work.outputs.push_back(buffer);
  }
}

}  // namespace

void place_forward(Program& program, const Network& network) {
  program.tensor_buffers.assign(network.tensors().size(), -1);
  std::vector<int> work_of_node(network.nodes().size(), -1);
  for (size_t w = 0; w < program.works.size(); ++w) {
    for (int node : program.works[w].nodes) work_of_node[node] = static_cast<int>(w);
  }
  for (size_t w = 0; w < program.works.size(); ++w) {
    int index = static_cast<int>(w);
    Work& work = program.works[w];
    const auto& first = network.nodes()[work.nodes.front()];
    if (first.layer->is_source()) {
      place_load(program, network, index);
      continue;
    }
    for (int tensor : first.inputs) work.inputs.push_back(program.tensor_buffers[tensor]);
    place_outputs(program, network, work_of_node, index);
    Step step{.kind = Step::Kind::forward, .work = index, .reads = work.inputs, .writes = work.outputs};
    if (work.facts.saved.count > 0) {
      work.saved = new_buffer(program, first.name + " saved", Buffer::Kind::saved, work.facts.saved);
      step.writes.push_back(work.saved);
    }
    if (work.facts.scratch.count > 0) {
      step.scratch = new_buffer(program, first.name + " scratch", Buffer::Kind::scratch, work.facts.scratch);
      step.writes.push_back(step.scratch);
    }
    program.steps.push_back(std::move(step));
  }
  program.forward_steps = static_cast<int>(program.steps.size());
}

}  // namespace cortado
