#include <algorithm>
#include <utility>
#include <vector>

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

// What gets a place: a life of a buffer.
struct Item {
  BufferIndex buffer;
  int life = 0;  // of Buffer::lives
  StepIndex first, last;
  int64_t size = 0;

  int64_t steps() const { return last.value() - first.value() + 1; }
  double product() const { return static_cast<double>(size) * static_cast<double>(steps()); }
};

std::vector<Item> items_of(const Program& program) {
  std::vector<Item> items;
  for (BufferIndex index : indices(program.buffers)) {
    const Buffer& buffer = program.buffers[index];
    if (buffer.kind == Buffer::Kind::batch) continue;
    int number = 0;
    for (const Buffer::Life& life : buffer.lives())
      items.push_back({index, number++, life.first, life.last, padded_size(buffer)});
  }
  return items;
}

// The most that lives at a step: no layout takes less.
int64_t most_alive(const Program& program, const std::vector<Item>& items) {
  IndexedVector<StepIndex, int64_t> change(program.steps.size() + 2, 0);
  for (const Item& item : items) {
    StepIndex after = item.last;
    change[item.first] += item.size;
    change[++after] -= item.size;
  }
  int64_t alive = 0, most = 0;
  for (int64_t each : change) most = std::max(most, alive += each);
  return most;
}

struct Placed {
  Item item;
  int64_t offset = 0;
  int64_t end() const { return offset + item.size; }
};

// A layout of the lives: an offset of each, ascending, and the end of all.
struct ArenaLayout {
  std::vector<Placed> places;
  int64_t end = 0;
};

// Places the lives in this order, each at the lowest offset where it overlaps none of the same time.
ArenaLayout place_in_order(const std::vector<Item>& order) {
  ArenaLayout layout;
  for (const Item& item : order) {
    int64_t offset = 0;
    for (const Placed& other : layout.places) {
      if (item.last < other.item.first || other.item.last < item.first) continue;
      if (offset + item.size <= other.offset) break;
      offset = std::max(offset, other.end());
    }
    layout.end = std::max(layout.end, offset + item.size);
    layout.places.insert(std::ranges::upper_bound(layout.places, offset, {}, &Placed::offset),
                         {item, offset});
  }
  return layout;
}

// Lays out the largest first. Where this leaves gaps, tries the same with the longest lives first of equals,
// the longest lives first, the largest products of size and life, and the order of the first steps, and takes
// what ends first.
void assign_offsets(Program& program) {
  std::vector<Item> order = items_of(program);
  const int64_t least = most_alive(program, order);
  ArenaLayout best;
  const auto try_order = [&](auto before) {
    if (!best.places.empty() && best.end - least < least_gap) return;
    std::ranges::stable_sort(order, before);
    ArenaLayout layout = place_in_order(order);
    if (best.places.empty() || layout.end < best.end) best = std::move(layout);
  };
  try_order([](const Item& a, const Item& b) { return a.size > b.size; });
  try_order([](const Item& a, const Item& b) {
    return a.size != b.size ? a.size > b.size : a.steps() > b.steps();
  });
  try_order([](const Item& a, const Item& b) { return a.steps() > b.steps(); });
  try_order([](const Item& a, const Item& b) { return a.product() > b.product(); });
  try_order([](const Item& a, const Item& b) { return a.first < b.first; });
  for (const Placed& place : best.places) {
    Buffer& buffer = program.buffers[place.item.buffer];
    (place.item.life == 0 ? buffer.offset : buffer.offset_again) = place.offset;
  }
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
