#include <algorithm>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

constexpr int64_t alignment = 64;

void set_lives(Program& program) {
  auto touch = [&](int index, int step) {
    Buffer& buffer = program.buffers[index];
    if (buffer.first_step < 0) buffer.first_step = step;
    buffer.last_step = std::max(buffer.last_step, step);
  };
  for (size_t index = 0; index < program.steps.size(); ++index) {
    const Step& step = program.steps[index];
    for (int buffer : step.writes) touch(buffer, static_cast<int>(index));
    for (int buffer : step.reads) touch(buffer, static_cast<int>(index));
  }
}

// Tensors that someone looks at after the iteration: losses and outputs of the network; or all of them.
void keep_outputs(Program& program, const Network& network, bool keep_tensors) {
  int end = static_cast<int>(program.steps.size());
  auto keep = [&](int buffer) {
    if (buffer >= 0 && program.buffers[buffer].first_step >= 0) program.buffers[buffer].last_step = end;
  };
  for (int tensor : network.outputs()) keep(program.tensor_buffers[tensor]);
  for (const auto& node : network.nodes()) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.loss_weights[i] != 0) keep(program.tensor_buffers[node.outputs[i]]);
    }
  }
  if (!keep_tensors) return;
  for (int buffer : program.tensor_buffers) keep(buffer);
  for (int buffer : program.gradient_buffers) keep(buffer);
}

// Largest first, each at the lowest offset where it overlaps no buffer alive at the same time.
void assign_offsets(Program& program) {
  std::vector<int> order;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != Buffer::Kind::batch && buffer.first_step >= 0) order.push_back(static_cast<int>(i));
  }
  std::ranges::stable_sort(order,
                           [&](int a, int b) { return program.buffers[a].size > program.buffers[b].size; });
  std::vector<int> placed;  // by offset
  for (int index : order) {
    Buffer& buffer = program.buffers[index];
    int64_t size = (std::max<int64_t>(buffer.size.count, 1) + alignment - 1) / alignment * alignment;
    int64_t offset = 0;
    for (int other_index : placed) {
      const Buffer& other = program.buffers[other_index];
      if (other.last_step < buffer.first_step || buffer.last_step < other.first_step) continue;
      if (offset + size <= other.offset) break;
      int64_t other_size = (std::max<int64_t>(other.size.count, 1) + alignment - 1) / alignment * alignment;
      offset = std::max(offset, other.offset + other_size);
    }
    buffer.offset = offset;
    program.arena.count = std::max(program.arena.count, offset + size);
    auto by_offset = [&](int a, int b) { return program.buffers[a].offset < program.buffers[b].offset; };
    placed.insert(std::ranges::upper_bound(placed, index, by_offset), index);
  }
}

}  // namespace

void plan_buffers(Program& program, const Network& network, bool keep_tensors) {
  set_lives(program);
  keep_outputs(program, network, keep_tensors);
  assign_offsets(program);
}

}  // namespace cortado
