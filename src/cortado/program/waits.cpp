#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

template <typename Number>
void sort_unique(std::vector<Number>& numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
}

// The ends of views cut each buffer into pieces, so that a view is of whole pieces.
class Pieces {
 public:
  explicit Pieces(const Program& program) : ends_(program.buffers.size()) {
    for (const Step& step : program.steps) {
      for (const auto* views : {&step.reads, &step.writes})
        for (const View& view : *views)
          for (int64_t end : {view.bytes.begin, view.bytes.end}) ends_[view.buffer].push_back(end);
    }
    for (auto& ends : ends_) {
      sort_unique(ends);
      first_.push_back(count_);
      count_ += static_cast<int>(ends.size());
    }
  }

  // Numbers of the pieces, counted over all buffers.
  std::vector<int> of(const View& view) const {
    const auto& ends = ends_[view.buffer];
    const auto place = [&](int64_t end) { return std::ranges::lower_bound(ends, end) - ends.begin(); };
    std::vector<int> pieces(place(view.bytes.end) - place(view.bytes.begin));
    std::iota(pieces.begin(), pieces.end(), first_[view.buffer] + place(view.bytes.begin));
    return pieces;
  }
  int count() const { return count_; }

 private:
  IndexedVector<BufferIndex, std::vector<int64_t>> ends_;
  IndexedVector<BufferIndex, int> first_;
  int count_ = 0;
};

// What a step reads and writes: pieces of buffers, values of parameters and gradients of parameters. Each has
// a number of its own.
struct Touched {
  std::vector<int> reads, writes;
};

class Resources {
 public:
  explicit Resources(const Program& program) : program_(program), pieces_(program) {}

  Touched of(const Step& step) const {
    Touched touched{pieces_of(step.reads), pieces_of(step.writes)};
    if (const auto* compute = step.as<steps::Compute>()) add_computing(*compute, touched);
    const auto add = [&](Use use, int resource) {
      if (use != Use::none) (use == Use::reads ? touched.reads : touched.writes).push_back(resource);
    };
    for (ParameterIndex parameter : step.parameters()) {
      add(step.facts().gradients, gradient(parameter));
      add(step.facts().values, weights(parameter));
    }
    return touched;
  }

 private:
  std::vector<int> pieces_of(const std::vector<View>& views) const {
    std::vector<int> all;
    for (const View& view : views) std::ranges::copy(pieces_.of(view), std::back_inserter(all));
    return all;
  }
  int weights(ParameterIndex parameter) const { return pieces_.count() + 2 * parameter.value(); }
  int gradient(ParameterIndex parameter) const { return weights(parameter) + 1; }

  void add_computing(const steps::Compute& compute, Touched& touched) const {
    const Work& work = program_.works[compute.work];
    const bool makes_gradients = !is_forward(compute.pass) && (compute.pass == Pass::backward_weights ||
                                                               !work.task.layer().splits_backward());
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      touched.reads.push_back(weights(work.parameters[p]));
      if (makes_gradients && work.task.parameter_gradients[p] && !work.partial_gradients[p])
        touched.writes.push_back(gradient(work.parameters[p]));
    }
  }

  const Program& program_;
  const Pieces pieces_;
};

bool ordered_by_lane(const Step& first, const Step& second) {
  return first.lane == Lane::compute && second.lane == Lane::compute;
}

// A step waits for the last writer of what it reads or writes; a writer waits also for the readers since.
// Compute steps are in order among themselves anyway. In the second pass over the steps the last access may
// belong to the iteration before; only carried steps of that are still under way.
void add_buffer_waits(Program& program) {
  struct Access {
    StepIndex writer{};
    std::vector<StepIndex> readers;
  };
  const Resources resources(program);
  std::map<int, Access> accesses;
  for (const bool next_iteration : {false, true}) {
    for (StepIndex index : indices(program.steps)) {
      Step& step = program.steps[index];
      const Touched touched = resources.of(step);
      auto wait_for = [&](StepIndex other) {
        if (!other || other == index || ordered_by_lane(program.steps[other], step)) return;
        if (!next_iteration) step.waits.push_back(other);
        if (next_iteration && other > index && program.steps[other].carried)
          step.waits_before.push_back(other);
      };
      for (int resource : touched.reads) {
        wait_for(accesses[resource].writer);
        accesses[resource].readers.push_back(index);
      }
      for (int resource : touched.writes) {
        wait_for(accesses[resource].writer);
        for (StepIndex reader : accesses[resource].readers) wait_for(reader);
        accesses[resource] = {index, {}};
      }
      sort_unique(next_iteration ? step.waits_before : step.waits);
    }
  }
}

// The barrier, the first step after the forward pass, waits for all of that pass's messages. Communication
// starts in order, so only the first message need wait for the barrier.
void add_barrier_waits(Program& program) {
  if (program.forward_end == static_cast<int>(program.steps.size())) return;
  const StepIndex barrier(program.forward_end);
  std::vector<StepIndex>& waits = program.steps[barrier].waits;
  for (StepIndex s(0); s < barrier; ++s)
    if (program.steps[s].lane == Lane::communication && !program.steps[s].carried) waits.push_back(s);
  sort_unique(waits);
  for (StepIndex s = barrier; s < program.steps.end_index(); ++s) {
    if (program.steps[s].lane != Lane::communication) continue;
    program.steps[s].waits.push_back(barrier);
    return sort_unique(program.steps[s].waits);
  }
}

// What goes to servers waits until all before it is computed.
void add_server_waits(Program& program) {
  StepIndex computed;
  for (StepIndex s : indices(program.steps)) {
    Step& step = program.steps[s];
    if (step.lane == Lane::compute) computed = s;
    const auto* scatter = step.as<steps::ScatterGradient>();
    if (!scatter || !scatter->served || !computed) continue;
    step.waits.push_back(computed);
    sort_unique(step.waits);
  }
}

}  // namespace

void add_waits(Program& program) {
  add_buffer_waits(program);
  add_server_waits(program);
  add_barrier_waits(program);
}

namespace {

// The views of a buffer that steps read and write, in the order of the steps.
struct Touch {
  StepIndex step;
  View view;
};

std::vector<Touch> within(const std::vector<Touch>& touches, const Buffer::Life& life) {
  std::vector<Touch> inside;
  std::ranges::copy_if(touches, std::back_inserter(inside), [&](const Touch& touch) {
    return life.first <= touch.step && touch.step <= life.last;
  });
  return inside;
}

// Of a life of a buffer of so many bytes, and of another.
bool share_memory(const Buffer::Life& one, Bytes size, const Buffer::Life& other, Bytes other_size) {
  return one.offset < other.offset + other_size.count && other.offset < one.offset + size.count;
}

void add_waits_between(Program& program, const std::vector<Touch>& earlier,
                       const std::vector<StepIndex>& firsts) {
  for (StepIndex first : firsts)
    for (const Touch& other : earlier)
      if (!ordered_by_lane(program.steps[other.step], program.steps[first]))
        program.steps[first].waits.push_back(other.step);
}

// The steps that touch some of a buffer first: one, or several where each has its samples.
std::vector<StepIndex> first_steps(const std::vector<Touch>& touches) {
  std::vector<Touch> firsts;
  for (const Touch& touch : touches) {
    const auto before = [&](const Touch& first) {
      return first.step != touch.step && overlap(first.view, touch.view);
    };
    if (std::ranges::none_of(firsts, before)) firsts.push_back(touch);
  }
  std::vector<StepIndex> steps;
  for (const Touch& first : firsts) steps.push_back(first.step);
  sort_unique(steps);
  return steps;
}

}  // namespace

// Where a buffer takes over the memory of an earlier one, the first steps that touch it wait for the steps
// that touch the earlier one; no compute step waits for another, since they run in order.
void add_memory_waits(Program& program) {
  IndexedVector<BufferIndex, std::vector<Touch>> touching(program.buffers.size());
  for (StepIndex s : indices(program.steps)) {
    for (const auto* views : {&program.steps[s].reads, &program.steps[s].writes})
      for (const View& view : *views) touching[view.buffer].push_back({s, view});
  }
  auto communicates = [&](StepIndex step) { return program.steps[step].lane == Lane::communication; };
  std::vector<BufferIndex> all, communicated;
  std::ranges::copy(indices(program.buffers), std::back_inserter(all));
  std::ranges::copy_if(all, std::back_inserter(communicated), [&](BufferIndex buffer) {
    return std::ranges::any_of(touching[buffer], communicates, &Touch::step);
  });
  for (BufferIndex l : indices(program.buffers)) {
    const Buffer& later = program.buffers[l];
    if (later.offset < 0) continue;
    for (const Buffer::Life& life : later.lives()) {
      const std::vector<StepIndex> firsts = first_steps(within(touching[l], life));
      // Compute steps wait for none of their lane.
      const std::vector<BufferIndex>& candidates =
          std::ranges::any_of(firsts, communicates) ? all : communicated;
      for (BufferIndex e : candidates) {
        const Buffer& earlier = program.buffers[e];
        if (earlier.offset < 0) continue;
        for (const Buffer::Life& before : earlier.lives())
          if (before.last < life.first && share_memory(before, earlier.size, life, later.size))
            add_waits_between(program, within(touching[e], before), firsts);
      }
      for (StepIndex first : firsts) sort_unique(program.steps[first].waits);
    }
  }
}

}  // namespace cortado
