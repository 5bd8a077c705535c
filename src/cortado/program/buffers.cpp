#include <algorithm>
#include <functional>
#include <initializer_list>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

constexpr int64_t alignment = 64;
// Smaller gaps of an arena are left: a layout takes time.
constexpr int64_t least_gap = int64_t{1} << 20;

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

int64_t padded_size(const Buffer& buffer) {
  return (std::max<int64_t>(buffer.size.count, 1) + alignment - 1) / alignment * alignment;
}

// The most that lives at a step: no layout takes less.
int64_t most_alive(const Program& program, const std::vector<BufferIndex>& placed) {
  IndexedVector<StepIndex, int64_t> change(program.steps.size() + 2, 0);
  for (BufferIndex index : placed) {
    const int64_t size = padded_size(program.buffers[index]);
    for (const Buffer::Life& life : program.buffers[index].lives()) {
      StepIndex after = life.last;
      change[life.first] += size;
      change[++after] -= size;
    }
  }
  int64_t alive = 0, most = 0;
  for (int64_t each : change) most = std::max(most, alive += each);
  return most;
}

// A layout of the buffers: an offset of each, and the end of all.
struct ArenaLayout {
  IndexedVector<BufferIndex, int64_t> offsets;
  int64_t end = 0;
};

// Places the buffers in this order, each at the lowest offset where it overlaps none alive at the same time.
ArenaLayout place_in_order(const Program& program, const std::vector<BufferIndex>& order) {
  ArenaLayout layout{IndexedVector<BufferIndex, int64_t>(program.buffers.size(), -1)};
  std::vector<BufferIndex> placed;  // by offset
  for (BufferIndex index : order) {
    const Buffer& buffer = program.buffers[index];
    const int64_t size = padded_size(buffer);
    int64_t offset = 0;
    for (BufferIndex other : placed) {
      if (!buffer.lives_beside(program.buffers[other])) continue;
      if (offset + size <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + padded_size(program.buffers[other]));
    }
    layout.offsets[index] = offset;
    layout.end = std::max(layout.end, offset + size);
    auto by_offset = [&](BufferIndex a, BufferIndex b) { return layout.offsets[a] < layout.offsets[b]; };
    placed.insert(std::ranges::upper_bound(placed, index, by_offset), index);
  }
  return layout;
}

int64_t life_length(const Buffer& buffer) {
  return buffer.first_step ? buffer.last_step.value() - buffer.first_step.value() + 1 : 0;
}

// Lays out the largest first. Where this leaves gaps, tries the longest lives first, the largest products of
// size and life, and the order of the first steps, and takes what ends first.
void assign_offsets(Program& program) {
  std::vector<BufferIndex> order;
  for (BufferIndex i : indices(program.buffers)) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != Buffer::Kind::batch && buffer.first_step) order.push_back(i);
  }
  const int64_t least = most_alive(program, order);
  const auto larger = [](const Buffer& a, const Buffer& b) { return a.size > b.size; };
  const auto longer = [](const Buffer& a, const Buffer& b) { return life_length(a) > life_length(b); };
  const auto more = [](const Buffer& a, const Buffer& b) {
    return static_cast<double>(a.size.count) * static_cast<double>(life_length(a)) >
           static_cast<double>(b.size.count) * static_cast<double>(life_length(b));
  };
  const auto earlier = [](const Buffer& a, const Buffer& b) { return a.first_step < b.first_step; };
  ArenaLayout best;
  for (const auto& before : std::initializer_list<std::function<bool(const Buffer&, const Buffer&)>>{
           larger, longer, more, earlier}) {
    std::ranges::stable_sort(
        order, [&](BufferIndex a, BufferIndex b) { return before(program.buffers[a], program.buffers[b]); });
    ArenaLayout layout = place_in_order(program, order);
    if (best.offsets.empty() || layout.end < best.end) best = std::move(layout);
    if (best.end - least < least_gap) break;
  }
  for (BufferIndex index : order) program.buffers[index].offset = best.offsets[index];
  program.arena.count = std::max(program.arena.count, best.end);
}

}  // namespace

void plan_buffers(Program& program, const Network& network, bool keep_tensors) {
  set_lives(program);
  outlive_communication(program);
  keep_outputs(program, network, keep_tensors);
  assign_offsets(program);
}

}  // namespace cortado
