#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

// What a step reads and writes: halves of buffers, values of parameters and gradients of parameters. Each has
// a number of its own.
struct Touched {
  std::vector<int> reads, writes;
};

class Resources {
 public:
  explicit Resources(const Program& program) : program_(program) {}

  Touched of(const Step& step) const {
    Touched touched{halves(step.reads, step), halves(step.writes, step)};
    switch (step.kind) {
      case Step::Kind::forward_partial:
      case Step::Kind::forward:
        for (int parameter : program_.works[step.work].parameters)
          touched.reads.push_back(weights(parameter));
        break;
      case Step::Kind::backward_partial:
      case Step::Kind::backward_weights:
      case Step::Kind::backward:
        add_backward(step, touched);
        break;
      case Step::Kind::accumulate_parameter:
      case Step::Kind::sum_gradient:
      case Step::Kind::scatter_gradient:
        for (int parameter : step.parameters) touched.writes.push_back(gradient(parameter));
        break;
      case Step::Kind::update:
        touched.reads.push_back(gradient(step.parameters[0]));
        touched.writes.push_back(weights(step.parameters[0]));
        break;
      case Step::Kind::gather_parameter:
        touched.writes.push_back(weights(step.parameters[0]));
        break;
      default:
        break;
    }
    return touched;
  }

 private:
  // A step of half of the samples touches that half of its buffers.
  std::vector<int> halves(const std::vector<int>& buffers, const Step& step) const {
    const int half = program_.half_of(step);
    std::vector<int> touched;
    for (int buffer : buffers)
      for (int which : {0, 1})
        if (half < 0 || half == which) touched.push_back(2 * buffer + which);
    return touched;
  }
  int weights(int parameter) const { return 2 * (static_cast<int>(program_.buffers.size()) + parameter); }
  int gradient(int parameter) const { return weights(parameter) + 1; }

  void add_backward(const Step& step, Touched& touched) const {
    const Work& work = program_.works[step.work];
    const bool makes_gradients =
        step.kind == Step::Kind::backward_weights || !work.task.layer().splits_backward();
    for (size_t p = 0; p < work.parameters.size(); ++p) {
      touched.reads.push_back(weights(work.parameters[p]));
      if (makes_gradients && work.task.parameter_gradients[p] && work.partial_gradients[p] < 0)
        touched.writes.push_back(gradient(work.parameters[p]));
    }
  }

  const Program& program_;
};

bool ordered_by_lane(const Step& first, const Step& second) {
  return first.lane == Lane::compute && second.lane == Lane::compute;
}

void sort_unique(std::vector<int>& steps) {
  std::ranges::sort(steps);
  steps.erase(std::ranges::unique(steps).begin(), steps.end());
}

// A step waits for the last writer of what it reads or writes; a writer waits also for the readers since.
// Compute steps are in order among themselves anyway. In the second pass over the steps the last access may
// belong to the iteration before; only carried steps of that are still under way.
void add_buffer_waits(Program& program) {
  struct Access {
    int writer = -1;
    std::vector<int> readers;
  };
  const Resources resources(program);
  std::map<int, Access> accesses;
  for (const bool again : {false, true}) {
    for (int index = 0; index < static_cast<int>(program.steps.size()); ++index) {
      Step& step = program.steps[index];
      const Touched touched = resources.of(step);
      auto wait_for = [&](int other) {
        if (other < 0 || other == index || ordered_by_lane(program.steps[other], step)) return;
        if (!again) step.waits.push_back(other);
        if (again && other > index && program.steps[other].carried) step.waits_before.push_back(other);
      };
      for (int resource : touched.reads) {
        wait_for(accesses[resource].writer);
        accesses[resource].readers.push_back(index);
      }
      for (int resource : touched.writes) {
        wait_for(accesses[resource].writer);
        for (int reader : accesses[resource].readers) wait_for(reader);
        accesses[resource] = {index, {}};
      }
      sort_unique(again ? step.waits_before : step.waits);
    }
  }
}

// Communication starts in order: what comes later waits with the first message.
void add_barrier_waits(Program& program) {
  if (program.forward_steps == static_cast<int>(program.steps.size())) return;
  const int barrier = program.forward_steps;
  std::vector<int>& waits = program.steps[barrier].waits;
  for (int s = 0; s < barrier; ++s)
    if (program.steps[s].lane == Lane::communication && !program.steps[s].carried) waits.push_back(s);
  sort_unique(waits);
  for (size_t s = barrier + 1; s < program.steps.size(); ++s) {
    if (program.steps[s].lane != Lane::communication) continue;
    program.steps[s].waits.push_back(barrier);
    return sort_unique(program.steps[s].waits);
  }
}

}  // namespace

void add_waits(Program& program) {
  add_buffer_waits(program);
  add_barrier_waits(program);
}

namespace {

// The first step of `touching` for each half of the samples: two, or one that touches both.
std::vector<int> first_steps(const Program& program, const std::vector<int>& touching) {
  std::vector<int> firsts;
  for (int which : {0, 1}) {
    const auto first = std::ranges::find_if(touching, [&](int step) {
      const int half = program.half_of(program.steps[step]);
      return half < 0 || half == which;
    });
    if (first != touching.end()) firsts.push_back(*first);
  }
  sort_unique(firsts);
  return firsts;
}

}  // namespace

// Where a buffer takes over the memory of one that lived before, its first step waits for the steps of the
// other lane (or overlapping ones) that touch the former one; so does the first step of each half.
void add_memory_waits(Program& program) {
  std::vector<std::vector<int>> touching(program.buffers.size());
  for (size_t s = 0; s < program.steps.size(); ++s) {
    for (int buffer : program.steps[s].reads) touching[buffer].push_back(static_cast<int>(s));
    for (int buffer : program.steps[s].writes) touching[buffer].push_back(static_cast<int>(s));
  }
  auto communicates = [&](int step) { return program.steps[step].lane == Lane::communication; };
  std::vector<int> all(program.buffers.size()), communicated;
  std::iota(all.begin(), all.end(), 0);
  std::ranges::copy_if(all, std::back_inserter(communicated),
                       [&](int buffer) { return std::ranges::any_of(touching[buffer], communicates); });
  for (size_t l = 0; l < program.buffers.size(); ++l) {
    const Buffer& later = program.buffers[l];
    if (later.offset < 0 || later.first_step < 0) continue;
    const std::vector<int> firsts = first_steps(program, touching[l]);
    // Compute steps wait for none of their lane.
    const std::vector<int>& candidates = std::ranges::any_of(firsts, communicates) ? all : communicated;
    for (int e : candidates) {
      const Buffer& earlier = program.buffers[e];
      if (earlier.offset < 0 || earlier.first_step < 0 || earlier.last_step >= later.first_step) continue;
      if (later.offset >= earlier.offset + earlier.size.count ||
          earlier.offset >= later.offset + later.size.count)
        continue;
      for (int first : firsts)
        for (int other : touching[e])
          if (!ordered_by_lane(program.steps[other], program.steps[first]))
            program.steps[first].waits.push_back(other);
    }
    for (int first : firsts) sort_unique(program.steps[first].waits);
  }
}

}  // namespace cortado
