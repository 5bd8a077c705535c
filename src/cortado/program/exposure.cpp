#include "cortado/program/exposure.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado {
namespace {

template <typename Value>
bool has(const std::vector<Value>& list, Value value) {
  return std::ranges::find(list, value) != list.end();
}

// What was under way on the communication lane.
struct Message {
  StepIndex step;
  double begin, end;
};

std::vector<Message> messages_by_end(const Program& program, std::span<const TimelineEntry> own,
                                     Seconds iteration) {
  std::vector<Message> messages;
  for (const TimelineEntry& entry : own) {
    if (entry.lane == Lane::compute) continue;
    messages.push_back({entry.step, entry.begin.count, entry.end.count});
    if (!program.steps[entry.step].carried || iteration.count <= 0) continue;
    const auto before = [&](Seconds time) { return (time - iteration).count; };
    messages.push_back({entry.step, before(entry.begin), before(entry.end)});
  }
  std::ranges::stable_sort(messages, {}, &Message::end);
  return messages;
}

class Search {
 public:
  Search(const Program& program, std::span<const TimelineEntry> own, Seconds iteration)
      : program_(program), messages_(messages_by_end(program, own, iteration)) {
    double end = 0;
    for (const Message& message : messages_) end = std::max(end, message.end);
    rounding_ = 1e-9 * end;
    for (StepIndex s : indices(program.steps)) {
      const Step& step = program.steps[s];
      if (step.lane == Lane::compute || step.carried) continue;
      all_.push_back(s);
    }
  }

  std::vector<Exposure> run(std::span<const TimelineEntry> own) {
    double free = 0;  // the compute lane, from here on
    bool first = true;
    for (const TimelineEntry& entry : own) {
      if (entry.lane == Lane::communication) continue;
      const Step& step = program_.steps[entry.step];
      std::vector<StepIndex> waits = step.waits;
      waits.insert(waits.end(), step.waits_before.begin(), step.waits_before.end());
      // A rank may begin while others still end the iteration before.
      if (first) free = std::min(0.0, entry.begin.count);
      first = false;
      add(free, entry.begin.count, waits);
      free = std::max(free, entry.end.count);
    }
    double end = free;
    for (StepIndex step : all_) end = std::max(end, own[static_cast<size_t>(step.value())].end.count);
    add(free, end, all_);
    std::ranges::sort(found_, {}, &Exposure::begin);
    return std::move(found_);
  }

 private:
  // The last message that ended within (begin, end]; if `waited` is given, only messages in it count.
  int last_one(double begin, double end, int from, const std::vector<StepIndex>* waited) const {
    for (int m = from; m >= 0; --m) {
      const Message& message = messages_[static_cast<size_t>(m)];
      if (message.end <= begin) return -1;
      if (message.end <= end + rounding_ && (!waited || has(*waited, message.step))) return m;
    }
    return -1;
  }

  // The compute lane stood still from `begin` to `end`, where the step after it waited for these.
  void add(double begin, double end, const std::vector<StepIndex>& waited) {
    if (end <= begin || waited.empty()) return;
    const auto after = std::ranges::upper_bound(messages_, end + rounding_, {}, &Message::end);
    int m = last_one(begin, end, static_cast<int>(after - messages_.begin()) - 1, &waited);
    if (m < 0) return;
    end = std::min(end, messages_[static_cast<size_t>(m)].end);
    while (true) {
      const Message& message = messages_[static_cast<size_t>(m)];
      const int before = message.begin <= begin ? -1 : last_one(begin, message.begin, m - 1, nullptr);
      // Where no other message ended before this one began, the wait until then counts for this one.
      const double since = before < 0 ? begin : std::min(end, message.begin);
      if (since < end) found_.push_back({message.step, {since}, {end}});
      if (before < 0) return;
      end = since;
      m = before;
    }
  }

  const Program& program_;
  const std::vector<Message> messages_;
  double rounding_ = 0;
  std::vector<StepIndex> all_;  // steps of the communication lane that are not carried
  std::vector<Exposure> found_;
};

}  // namespace

WorkIndex work_served(const Program& program, const Step& step) {
  auto computes = [&](auto&& belongs) {
    for (WorkIndex w : indices(program.works)) {
      const Work& work = program.works[w];
      if (work.kind == Work::Kind::compute && belongs(work)) return w;
    }
    return WorkIndex();
  };
  if (!step.parameters().empty())
    return computes([&](const Work& work) { return has(work.parameters, step.parameters()[0]); });
  const Work& own = program.works[step.work()];
  if (own.kind == Work::Kind::compute) return program.whole_of(step.work());
  if (own.nodes.empty()) return {};
  return computes([&](const Work& work) { return has(work.nodes, own.nodes[0]); });
}

WorkIndex layer_work(const Program& program, const Step& step) {
  if (step.is<steps::Load>()) return {};
  if (step.lane == Lane::communication) return work_served(program, step);
  if (const auto* update = step.as<steps::Update>()) {
    for (WorkIndex w : indices(program.works))
      if (has(program.works[w].parameters, update->parameter)) return w;
  }
  return program.whole_of(step.work());
}

std::vector<Exposure> exposures_of(const Program& program, std::span<const TimelineEntry> own,
                                   Seconds iteration) {
  if (own.empty()) return {};
  ensure(own.size() == program.steps.size(), "a timeline has every step of its program");
  return Search(program, own, iteration).run(own);
}

}  // namespace cortado
