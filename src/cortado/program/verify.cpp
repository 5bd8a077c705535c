#include "cortado/program/verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

#include "cortado/base/error.h"

namespace cortado {
namespace {

template <typename... Values>
void check(bool holds, fmt::format_string<Values...> message, Values&&... values) {
  if (!holds) throw InternalError("program: " + fmt::format(message, std::forward<Values>(values)...));
}

// The bytes of each buffer that have been written.
class Written {
 public:
  explicit Written(const Program& program) : runs_(program.buffers.size()) {}

  void add(const View& view) {
    auto& runs = runs_[view.buffer];
    Range all = view.bytes;
    std::erase_if(runs, [&](const Range& run) {
      const bool joins = run.begin <= all.end && all.begin <= run.end;
      if (joins) all = {std::min(all.begin, run.begin), std::max(all.end, run.end)};
      return joins;
    });
    runs.push_back(all);
  }
  void forget(BufferIndex buffer) { runs_[buffer].clear(); }
  bool has(const View& view) const {
    return std::ranges::any_of(runs_[view.buffer], [&](const Range& run) {
      return run.begin <= view.bytes.begin && view.bytes.end <= run.end;
    });
  }

 private:
  IndexedVector<BufferIndex, std::vector<Range>> runs_;  // none touch
};

void verify_reads(const Program& program) {
  Written written(program);
  std::multimap<StepIndex, BufferIndex> again;  // buffers that are made again
  for (BufferIndex buffer : indices(program.buffers))
    if (program.buffers[buffer].again) again.emplace(program.buffers[buffer].again, buffer);
  for (StepIndex index : indices(program.steps)) {
    const Step& step = program.steps[index];
    const auto [begin, end] = again.equal_range(index);
    for (auto one = begin; one != end; ++one) written.forget(one->second);
    for (const View& view : step.reads) {
      check(written.has(view) || step.late, "step {} ({}) reads {} before it is written", index,
            name_of(step), program.buffers[view.buffer].name);
    }
    for (const View& view : step.writes) written.add(view);
  }
  for (StepIndex index : indices(program.steps)) {
    for (const View& view : program.steps[index].reads)
      check(written.has(view), "step {} reads {}, which nobody writes", index,
            program.buffers[view.buffer].name);
  }
}

void verify_waits(const Program& program) {
  for (StepIndex index : indices(program.steps)) {
    for (StepIndex other : program.steps[index].waits) {
      check(other < index, "step {} waits for the later step {}", index, other);
      check(program.steps[other].lane == Lane::communication ||
                program.steps[index].lane == Lane::communication,
            "step {} waits for step {} of the compute lane, as it does anyway", index, other);
    }
  }
}

// A set of steps, a bit each: programs have thousands of steps, and sets of them are united for every wait.
class StepSet {
 public:
  explicit StepSet(size_t steps) : words_((steps + 63) / 64) {}
  void add(StepIndex step) { words_[word(step)] |= bit(step); }
  void add(const StepSet& steps) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= steps.words_[i];
  }
  bool has(StepIndex step) const { return (words_[word(step)] & bit(step)) != 0; }

 private:
  static size_t word(StepIndex step) { return static_cast<size_t>(step.value()) / 64; }
  static uint64_t bit(StepIndex step) { return uint64_t{1} << (step.value() % 64); }

  std::vector<uint64_t> words_;
};

// The steps known to have ended when a step starts, for each step.
using StepsBefore = IndexedVector<StepIndex, StepSet>;
StepsBefore steps_before(const Program& program) {
  const size_t count = program.steps.size();
  StepsBefore before(count, StepSet(count));
  StepIndex last_compute;
  for (StepIndex s : indices(program.steps)) {
    auto add = [&](StepIndex other) {
      before[s].add(other);
      before[s].add(before[other]);
    };
    for (StepIndex other : program.steps[s].waits) add(other);
    if (program.steps[s].lane != Lane::compute) continue;
    if (last_compute) add(last_compute);
    last_compute = s;
  }
  return before;
}

// Steps that run at the same time do not touch the same memory, save to read it.
void verify_races(const Program& program) {
  const bool communicates = std::ranges::any_of(
      program.steps, [](const Step& s) { return s.lane == Lane::communication && !s.is<steps::Load>(); });
  if (!communicates) return;
  const auto before = steps_before(program);
  struct At {
    const std::vector<View>& views;
    StepIndex step;
  };
  const auto same_memory = [&](const View& one, StepIndex step, const View& other, StepIndex other_step) {
    const int64_t at = program.buffers[one.buffer].offset_at(step),
                  other_at = program.buffers[other.buffer].offset_at(other_step);
    if (one.buffer == other.buffer && at == other_at) return overlap(one, other);
    return at >= 0 && other_at >= 0 && at + one.bytes.begin < other_at + other.bytes.end &&
           other_at + other.bytes.begin < at + one.bytes.end;
  };
  const auto clash = [&](const At& writes, const At& touches) {
    return std::ranges::any_of(writes.views, [&](const View& one) {
      return std::ranges::any_of(touches.views, [&](const View& other) {
        return same_memory(one, writes.step, other, touches.step);
      });
    });
  };
  for (StepIndex s : indices(program.steps)) {
    for (StepIndex e(0); e < s; ++e) {
      const Step &step = program.steps[s], &earlier = program.steps[e];
      const bool together = step.lane == Lane::communication || earlier.lane == Lane::communication;
      if (!together || before[s].has(e)) continue;
      const At written{step.writes, s}, written_before{earlier.writes, e};
      const bool races = clash(written, written_before) || clash(written, {earlier.reads, e}) ||
                         clash(written_before, {step.reads, s});
      check(!races, "steps {} ({}) and {} ({}) touch the same memory and may run together", e,
            name_of(earlier), s, name_of(step));
    }
  }
}

// Keeps a map of the memory in use, ordered by offset. A buffer enters it when a life of it begins; those
// whose lives have ended leave it before.
void verify_disjoint(const Program& program) {
  struct Use {
    const Buffer* buffer;
    Buffer::Life life;
  };
  std::vector<Use> by_start, by_end;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.offset < 0 || buffer.size.count <= 0) continue;
    for (const Buffer::Life& life : buffer.lives()) by_start.push_back({&buffer, life});
  }
  by_end = by_start;
  std::ranges::stable_sort(by_start, {}, [](const Use& use) { return use.life.first; });
  std::ranges::stable_sort(by_end, {}, [](const Use& use) { return use.life.last; });
  std::map<int64_t, const Buffer*> in_use;  // by offset
  auto ended = by_end.begin();
  for (const auto& [buffer, life] : by_start) {
    for (; ended->life.last < life.first; ++ended) in_use.erase(ended->life.offset);
    const auto above = in_use.lower_bound(life.offset);
    const auto under = above == in_use.begin() ? in_use.end() : std::prev(above);
    check(above == in_use.end() || life.offset + buffer->size.count <= above->first,
          "{} and {} share memory while both live", buffer->name,
          above == in_use.end() ? "" : above->second->name);
    check(under == in_use.end() || under->first + under->second->size.count <= life.offset,
          "{} and {} share memory while both live", buffer->name,
          under == in_use.end() ? "" : under->second->name);
    in_use.emplace(life.offset, buffer);
  }
}

// No step touches a buffer outside the buffer's life, and buffers with common lives have disjoint memory.
void verify_memory(const Program& program) {
  for (StepIndex index : indices(program.steps)) {
    auto alive = [&](const View& view) {
      const Buffer& buffer = program.buffers[view.buffer];
      check(buffer.lives_at(index), "step {} touches {} outside its life", index, buffer.name);
    };
    std::ranges::for_each(program.steps[index].reads, alive);
    std::ranges::for_each(program.steps[index].writes, alive);
  }
  verify_disjoint(program);
}

// Some step of the next iteration waits for each carried step, and none of its own iteration does.
void verify_carried(const Program& program) {
  IndexedVector<StepIndex, bool> awaited(program.steps.size(), false);
  for (StepIndex index : indices(program.steps)) {
    for (StepIndex other : program.steps[index].waits)
      check(!program.steps[other].carried, "step {} waits for step {}, which may end later", index, other);
    for (StepIndex other : program.steps[index].waits_before) {
      check(program.steps[other].carried,
            "step {} waits for step {} of the iteration before, which has ended", index, other);
      check(index < other, "step {} waits for step {} of the iteration before, which runs again by then",
            index, other);
      awaited[other] = true;
    }
  }
  for (StepIndex index : indices(program.steps))
    check(!program.steps[index].carried || awaited[index], "nobody waits for step {} in the next iteration",
          index);
}

// Buffers that carried and late steps touch live throughout. Where a carried step and a step of the next
// iteration touch the same buffer and one of them writes it, the latter waits for the former.
void verify_lasting(const Program& program) {
  StepsBefore before;
  for (StepIndex index : indices(program.steps)) {
    const Step& step = program.steps[index];
    if (!step.carried && !step.late) continue;
    for (const auto* views : {&step.reads, &step.writes}) {
      for (const View& view : *views) {
        const Buffer& buffer = program.buffers[view.buffer];
        check(buffer.first_step == StepIndex(0) && buffer.last_step == program.steps.end_index(),
              "{} is needed in the next iteration and does not live so long", buffer.name);
      }
    }
    if (!step.carried || (step.reads.empty() && step.writes.empty())) continue;
    if (before.empty()) before = steps_before(program);
    auto touches = [](const std::vector<View>& writes, const Step& other) {
      return std::ranges::any_of(writes, [&](const View& view) {
        const auto touch = [&](const View& another) { return overlap(view, another); };
        return std::ranges::any_of(other.reads, touch) || std::ranges::any_of(other.writes, touch);
      });
    };
    for (StepIndex s(0); s < index; ++s) {
      if (!touches(step.writes, program.steps[s]) && !touches(program.steps[s].writes, step)) continue;
      bool waits = false;
      for (StepIndex t(0); t <= s; ++t) {
        const auto& awaited = program.steps[t].waits_before;
        waits |= (t == s || before[s].has(t)) && std::ranges::find(awaited, index) != awaited.end();
      }
      check(waits, "step {} does not wait for step {} of the iteration before", s, index);
    }
  }
}

void verify_updates(const Program& program, const Network& network) {
  IndexedVector<ParameterIndex, int> updates(network.parameters().size(), 0);
  IndexedVector<ParameterIndex, bool> late(network.parameters().size(), false),
      used(network.parameters().size(), false);
  for (const Step& step : program.steps) {
    if (const auto* update = step.as<steps::Update>()) {
      const ParameterIndex parameter = update->parameter;
      ++updates[parameter];
      late[parameter] = step.late;
      check(!step.late || !used[parameter], "parameter {} is used before its late update",
            network.parameters()[parameter].name);
    }
    if (!step.work() || step.is<steps::Load>() || step.late) continue;
    for (ParameterIndex parameter : program.works[step.work()].parameters) {
      used[parameter] = true;
      check(updates[parameter] == 0 || late[parameter] || (step.runs(Pass::forward) && !step.again()),
            "parameter {} is used after its update", network.parameters()[parameter].name);
    }
  }
  if (!network.learns()) return;
  for (ParameterIndex p : indices(updates)) {
    const auto& parameter = network.parameters()[p];
    const bool held = program.placement->slices[p][program.rank].has_value();
    check(updates[p] == (parameter.wants_gradient && held ? 1 : 0), "parameter {} is updated {} times",
          parameter.name, updates[p]);
  }
}

// The parts of a work follow one another in each of its buffers, and together are all of it. Each runs its
// forward step once, in place of the whole.
void verify_parts(const Program& program) {
  std::map<WorkIndex, std::vector<WorkIndex>> parts;  // by the whole
  IndexedVector<WorkIndex, int> runs(program.works.size(), 0);
  for (WorkIndex w : indices(program.works))
    if (const WorkIndex whole = program.works[w].part.whole) parts[whole].push_back(w);
  for (const Step& step : program.steps) {
    const auto* exchange = step.as<steps::Exchange>();
    if (step.again()) continue;
    if (step.runs(Pass::forward) || (exchange && !exchange->backward)) ++runs[step.work()];
  }
  for (const auto& [w, works] : parts) {
    const Work& whole = program.works[w];
    const auto tiles = [&](auto&& view_of) {
      View all = view_of(program.works[works[0]]);
      for (size_t part = 1; part < works.size(); ++part) {
        const View next = view_of(program.works[works[part]]);
        if (next.buffer != all.buffer || next.bytes.begin != all.bytes.end) return false;
        all.bytes.end = next.bytes.end;
      }
      return all == view_of(whole);
    };
    bool all = runs[w] == 0 && tiles([](const Work& work) { return work.saved; });
    for (WorkIndex part : works) all = all && runs[part] == 1;
    for (const auto list : {&Work::inputs, &Work::outputs})
      for (size_t i = 0; i < (whole.*list).size(); ++i)
        all = all && tiles([&](const Work& work) { return (work.*list)[i]; });
    check(all, "the parts of work {} are not all of it", w);
  }
}

// Which step wrote what lies in each buffer. A step that runs again writes what it wrote first.
class Contents {
 public:
  explicit Contents(const Program& program) : writers_(program.buffers.size()) {}

  using Writer = std::tuple<int64_t, int64_t, StepIndex>;  // a run of bytes, and its writer

  void write(const View& view, StepIndex step) {
    auto& writers = writers_[view.buffer];
    std::erase_if(writers, [&](const Writer& writer) {
      const auto& [begin, end, by] = writer;
      return view.bytes.begin <= begin && end <= view.bytes.end;
    });
    writers.insert({view.bytes.begin, view.bytes.end, step});
  }
  std::set<Writer> of(const std::vector<View>& views) const {
    std::set<Writer> all;
    for (const View& view : views)
      for (const Writer& writer : writers_[view.buffer])
        if (std::get<0>(writer) < view.bytes.end && view.bytes.begin < std::get<1>(writer))
          all.insert(writer);
    return all;
  }

 private:
  IndexedVector<BufferIndex, std::set<Writer>> writers_;
};

// A step that runs again comes after the barrier, once, and finds what it found in the forward pass.
void verify_again(const Program& program) {
  Contents contents(program);
  std::map<std::pair<bool, WorkIndex>, StepIndex>
      first;  // forward exchanges and forward passes, by their work
  std::map<StepIndex, std::set<Contents::Writer>> found;
  std::set<StepIndex> repeated;
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    const std::pair<bool, WorkIndex> what{step.is<steps::Exchange>(), step.work()};
    StepIndex writer = s;
    if (step.again()) {
      check(first.contains(what) && s.value() > program.forward_end,
            "step {} runs again, and nothing ran before", s);
      writer = first[what];
      check(repeated.insert(writer).second, "step {} runs again more than once", writer);
      check(contents.of(step.reads) == found[writer], "step {} runs again over other values than step {}", s,
            writer);
    } else if (s.value() < program.forward_end && (what.first || step.runs(Pass::forward))) {
      first[what] = s;
      found[s] = contents.of(step.reads);
    }
    for (const View& view : step.writes) contents.write(view, writer);
  }
}

}  // namespace

void verify(const Program& program, const Network& network) {
  verify_reads(program);
  verify_waits(program);
  verify_memory(program);
  verify_races(program);
  verify_carried(program);
  verify_lasting(program);
  verify_updates(program, network);
  verify_parts(program);
  verify_again(program);
}

}  // namespace cortado
