#include <algorithm>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

constexpr int64_t alignment = 64;

void live_throughout(Buffer& buffer) { buffer.released = buffer.again = {}; }

// Sets when buffers live. A buffer that carried or late steps touch lives throughout. One that is written
// again need not live in between.
void set_lives(Program& program) {
  auto touch = [&](const View& view, StepIndex step) {
    Buffer& buffer = program.buffers[view.buffer];
    if (!buffer.first_step) buffer.first_step = step;
    buffer.last_step = std::max(buffer.last_step, step);
  };
  auto release = [&](const View& view, StepIndex step) {
    Buffer& buffer = program.buffers[view.buffer];
    if (!buffer.first_step || buffer.again || buffer.last_step == step) return;
    buffer.released = buffer.last_step;
    buffer.again = step;
  };
  for (StepIndex index : indices(program.steps)) {
    const Step& step = program.steps[index];
    if (step.again())
      for (const View& view : step.writes) release(view, index);
    for (const View& view : step.writes) touch(view, index);
    for (const View& view : step.reads) touch(view, index);
  }
  const StepIndex end = program.steps.end_index();
  for (const Step& step : program.steps) {
    if (!step.carried && !step.late) continue;
    for (const auto* views : {&step.reads, &step.writes}) {
      for (const View& view : *views) {
        live_throughout(program.buffers[view.buffer]);
        program.buffers[view.buffer].first_step = StepIndex(0);
        program.buffers[view.buffer].last_step = end;
      }
    }
  }
}

// Lets a buffer that a communication step touches live until the first compute step that waits for that step
// anyway. So no earlier compute step takes the memory over, and has to wait for it; the one that waits may.
void outlive_communication(Program& program) {
  IndexedVector<StepIndex, StepIndex> first_waiting(program.steps.size());
  for (StepIndex s(program.steps.size() - 1); s; --s) {
    if (program.steps[s].lane != Lane::compute) continue;
    for (StepIndex other : program.steps[s].waits) first_waiting[other] = s;
  }
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    if (step.lane != Lane::communication || !first_waiting[s]) continue;
    StepIndex last = first_waiting[s];
    --last;
    auto extend = [&](const View& view) {
      Buffer& buffer = program.buffers[view.buffer];
      const bool before = buffer.again && s < buffer.again;
      StepIndex& end = before ? buffer.released : buffer.last_step;
      end = std::max(end, last);
      if (before && end >= buffer.again) live_throughout(buffer);
    };
    std::ranges::for_each(step.reads, extend);
    std::ranges::for_each(step.writes, extend);
  }
}

// Keeps the tensors that someone looks at after the iteration: those reported. With `keep_tensors` every
// tensor, gradient and saved value has memory of its own throughout, so that steps may run in any order.
void keep_outputs(Program& program, const Network& network, bool keep_tensors) {
  const StepIndex end = program.steps.end_index();
  auto keep = [&](BufferIndex buffer) {
    if (buffer && program.buffers[buffer].first_step) program.buffers[buffer].last_step = end;
  };
  for (TensorIndex tensor : indices(network.tensors())) {
    if (program.placement->report_values[tensor]) keep(program.tensor_buffer(tensor));
  }
  if (!keep_tensors) return;
  for (Buffer& buffer : program.buffers) {
    using Kind = Buffer::Kind;
    const bool lasts =
        buffer.kind == Kind::activation || buffer.kind == Kind::gradient || buffer.kind == Kind::saved;
    if (!lasts || !buffer.first_step) continue;
    buffer.first_step = StepIndex(0);
    buffer.last_step = end;
  }
}

// Places the largest first, each at the lowest offset where it overlaps no buffer alive at the same time.
void assign_offsets(Program& program) {
  std::vector<BufferIndex> order;
  for (BufferIndex i : indices(program.buffers)) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != Buffer::Kind::batch && buffer.first_step) order.push_back(i);
  }
  std::ranges::stable_sort(
      order, [&](BufferIndex a, BufferIndex b) { return program.buffers[a].size > program.buffers[b].size; });
  std::vector<BufferIndex> placed;  // by offset
  for (BufferIndex index : order) {
    Buffer& buffer = program.buffers[index];
    int64_t size = (std::max<int64_t>(buffer.size.count, 1) + alignment - 1) / alignment * alignment;
    int64_t offset = 0;
    for (BufferIndex other_index : placed) {
      const Buffer& other = program.buffers[other_index];
      if (!buffer.lives_beside(other)) continue;
      if (offset + size <= other.offset) break;
      int64_t other_size = (std::max<int64_t>(other.size.count, 1) + alignment - 1) / alignment * alignment;
      offset = std::max(offset, other.offset + other_size);
    }
    buffer.offset = offset;
    program.arena.count = std::max(program.arena.count, offset + size);
    auto by_offset = [&](BufferIndex a, BufferIndex b) {
      return program.buffers[a].offset < program.buffers[b].offset;
    };
    placed.insert(std::ranges::upper_bound(placed, index, by_offset), index);
  }
}

}  // namespace

void plan_buffers(Program& program, const Network& network, bool keep_tensors) {
  set_lives(program);
  outlive_communication(program);
  keep_outputs(program, network, keep_tensors);
  assign_offsets(program);
}

}  // namespace cortado
