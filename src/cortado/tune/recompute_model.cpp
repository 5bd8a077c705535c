#include "cortado/tune/recompute_model.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <set>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// More states than these are not compared at one place of the net.
constexpr size_t most_states = 200;

bool lasts(const Buffer& buffer) {
  return buffer.kind == Buffer::Kind::activation || buffer.kind == Buffer::Kind::saved;
}

}  // namespace

RecomputeModel::RecomputeModel(const Program& program, const IndexedVector<WorkIndex, bool>& may_drop,
                               const IndexedVector<WorkIndex, Seconds>& forward)
    : program_(program) {
  find_lives();
  find_items(may_drop, forward);
  follow_movements();
  const int count = static_cast<int>(items_.size());
  constexpr int most = 3000;  // pairs of works are weighed
  if (count > most)
    throw UserError(fmt::format(
        "{} layers are too many to choose from what is recomputed, at most {}; name layers in the "
        "strategy",
        count, most));
  segments_.resize(items_.size());
  for (int begin = 0; begin < count; ++begin)
    for (int end = begin + 1; end <= count; ++end)
      segments_[static_cast<size_t>(begin)].push_back(segment(begin, end));
}

void RecomputeModel::find_lives() {
  const size_t works = program_.works.size();
  live_.assign(program_.steps.size(), 0);
  work_of_.assign(program_.steps.size(), 0);
  forward_.resize(works);
  outputs_.resize(works);
  inputs_.resize(works);
  for (const Buffer& buffer : program_.buffers) {
    if (buffer.offset < 0) continue;
    for (StepIndex s = buffer.first_step; s <= buffer.last_step && s < program_.steps.end_index(); ++s)
      live_[s] += buffer.size.count;
  }
  most_ = *std::ranges::max_element(live_);
  int work = static_cast<int>(works) - 1;
  for (StepIndex s : indices(program_.steps)) {
    const Step& step = program_.steps[s];
    if (step.work() && !step.late) {
      const auto w = static_cast<size_t>(step.work().value());
      if (s.value() > program_.forward_end) work = std::min(work, static_cast<int>(w));
      if (s.value() < program_.forward_end) {
        forward_[w].push_back(s);
        for (const View& view : step.writes) outputs_[w].push_back(view.buffer);
        for (const View& view : step.reads) inputs_[w].push_back(view.buffer);
      }
    }
    work_of_[s] = work;
  }
}

void RecomputeModel::find_items(const IndexedVector<WorkIndex, bool>& may_drop,
                                const IndexedVector<WorkIndex, Seconds>& forward) {
  struct Touched {
    int low = std::numeric_limits<int>::max(), high = -1, last_writer = -1;
    std::vector<int> writers{};
  };
  IndexedVector<BufferIndex, Touched> touched(program_.buffers.size());
  const int count = static_cast<int>(program_.works.size());
  items_.resize(program_.works.size());
  for (int w = 0; w < count; ++w) {
    Item& item = items_[static_cast<size_t>(w)];
    item = {.may_drop = may_drop[WorkIndex(w)], .low = w, .high = w, .seconds = forward[WorkIndex(w)].count};
    for (const auto* buffers : {&inputs_[static_cast<size_t>(w)], &outputs_[static_cast<size_t>(w)]}) {
      for (BufferIndex buffer : *buffers) {
        touched[buffer].low = std::min(touched[buffer].low, w);
        touched[buffer].high = w;
      }
    }
    for (BufferIndex buffer : inputs_[static_cast<size_t>(w)])
      item.inputs.insert(item.inputs.end(), touched[buffer].writers.begin(), touched[buffer].writers.end());
    for (BufferIndex buffer : outputs_[static_cast<size_t>(w)]) {
      touched[buffer].writers.push_back(w);
      touched[buffer].last_writer = w;
    }
  }
  for (BufferIndex b : indices(program_.buffers)) {
    const Buffer& buffer = program_.buffers[b];
    if (!lasts(buffer) || touched[b].last_writer < 0) continue;
    const bool needed = buffer.last_step.value() > program_.forward_end;
    items_[static_cast<size_t>(touched[b].last_writer)].bytes += needed ? buffer.size.count : 0;
    for (int writer : touched[b].writers) {
      Item& item = items_[static_cast<size_t>(writer)];
      item.low = std::min(item.low, touched[b].low);
      item.high = std::max(item.high, touched[b].high);
    }
  }
}

// What only moves a dropped tensor is dropped with it. So it must be read within the segment, too.
void RecomputeModel::follow_movements() {
  for (size_t w = items_.size(); w-- > 0;) {
    if (program_.works[WorkIndex(w)].is_layer()) continue;
    for (int producer : items_[w].inputs) {
      Item& item = items_[static_cast<size_t>(producer)];
      item.high = std::max(item.high, items_[w].high);
      item.may_drop = item.may_drop && items_[w].may_drop;
    }
  }
}

// Works of the segment that run again, if it drops what it can: those whose tensors the backward pass reads,
// and those that make what these need.
std::vector<int> RecomputeModel::needed(int begin, int end) const {
  std::vector<bool> wanted(static_cast<size_t>(end - begin), false);
  std::vector<bool> drops;
  for (int w = begin; w < end; ++w) {
    const Item& item = items_[static_cast<size_t>(w)];
    bool all = item.may_drop && item.low >= begin && item.high < end;
    if (!program_.works[WorkIndex(w)].is_layer())
      for (int input : item.inputs) all = all && input >= begin && drops[static_cast<size_t>(input - begin)];
    drops.push_back(all);
  }
  std::vector<int> works;
  for (int w = end - 1; w >= begin; --w) {
    const Item& item = items_[static_cast<size_t>(w)];
    if (!drops[static_cast<size_t>(w - begin)] ||
        (item.bytes == 0 && !wanted[static_cast<size_t>(w - begin)]))
      continue;
    works.push_back(w);
    for (int input : item.inputs)
      if (input >= begin) wanted[static_cast<size_t>(input - begin)] = true;
  }
  std::ranges::reverse(works);
  return works;
}

StepIndex RecomputeModel::backward_begin(int end) const {
  for (StepIndex s(program_.forward_end + 1); s < program_.steps.end_index(); ++s)
    if (work_of_[s] < end) return s;
  return program_.steps.end_index();
}

// Bytes that the segment reads again and that lie no longer there when it does.
int64_t RecomputeModel::kept_longer(const Segment& segment, StepIndex until) const {
  std::set<BufferIndex> own, read;
  for (int w : segment.works) {
    own.insert(outputs_[static_cast<size_t>(w)].begin(), outputs_[static_cast<size_t>(w)].end());
    read.insert(inputs_[static_cast<size_t>(w)].begin(), inputs_[static_cast<size_t>(w)].end());
  }
  int64_t bytes = 0;
  for (BufferIndex buffer : read) {
    const Buffer& of = program_.buffers[buffer];
    if (of.offset >= 0 && !own.contains(buffer) && of.last_step < until) bytes += of.size.count;
  }
  return bytes;
}

// A dropped tensor is gone after the last work of the forward pass that touches it.
int64_t RecomputeModel::forward_peak(const Segment& segment, int begin, int end) const {
  std::vector<int64_t> going(static_cast<size_t>(end - begin) + 1, 0);  // after each work
  for (int w : segment.works) {
    const Item& item = items_[static_cast<size_t>(w)];
    going[static_cast<size_t>(item.high - begin)] += item.bytes;
  }
  int64_t peak = 0, gone = 0;
  for (int w = begin; w < end; ++w) {
    for (StepIndex s : forward_[static_cast<size_t>(w)]) peak = std::max(peak, live_[s] - gone);
    gone += going[static_cast<size_t>(w - begin)];
  }
  return peak;
}

int64_t RecomputeModel::backward_peak(int begin, int end) const {
  int64_t peak = 0;
  for (StepIndex s = backward_begin(end); s < program_.steps.end_index() && work_of_[s] >= begin; ++s)
    peak = std::max(peak, live_[s]);
  return peak;
}

// While the segment runs again, just before its backward pass.
int64_t RecomputeModel::repeat_peak(const Segment& segment, int64_t longer, StepIndex at) const {
  int64_t live = longer, missing = 0, peak = 0;
  for (const Buffer& buffer : program_.buffers)
    if (buffer.offset >= 0 && buffer.first_step < at && buffer.last_step >= at) live += buffer.size.count;
  for (int w : segment.works) missing += items_[static_cast<size_t>(w)].bytes;
  for (int w : segment.works) {
    missing -= items_[static_cast<size_t>(w)].bytes;
    int64_t passing = 0;  // what lives in the forward pass alone, at that step
    for (const auto* buffers : {&inputs_[static_cast<size_t>(w)], &outputs_[static_cast<size_t>(w)]}) {
      const std::set<BufferIndex> each(buffers->begin(), buffers->end());
      for (BufferIndex buffer : each) {
        const Buffer& of = program_.buffers[buffer];
        const bool made_again = of.offset >= 0 && of.last_step.value() <= program_.forward_end;
        if (made_again) passing += of.size.count;
      }
    }
    peak = std::max(peak, live - missing + passing);
  }
  return peak;
}

RecomputeModel::Segment RecomputeModel::segment(int begin, int end) const {
  Segment segment{.works = needed(begin, end)};
  for (int w : segment.works) {
    segment.saved += items_[static_cast<size_t>(w)].bytes;
    segment.seconds += items_[static_cast<size_t>(w)].seconds;
  }
  const StepIndex at = backward_begin(end);
  segment.peak = std::max(forward_peak(segment, begin, end), backward_peak(begin, end));
  if (segment.works.empty()) return segment;
  const int64_t longer = kept_longer(segment, at);
  segment.saved -= longer;
  segment.peak = std::max(segment.peak, repeat_peak(segment, longer, at));
  return segment;
}

// What is chosen for all works before one: bytes saved and seconds added.
struct RecomputeModel::State {
  int64_t saved = 0;
  double seconds = 0;
  int begin = -1;     // of the last segment
  size_t before = 0;  // the state that it follows
};

std::optional<RecomputeModel::Choice> RecomputeModel::cheapest(Bytes limit) const {
  const int count = static_cast<int>(items_.size());
  Choice choice;
  std::vector<std::vector<State>> states(items_.size() + 1);
  states[0] = {State{}};
  for (int end = 1; end <= count; ++end) {
    auto& here = states[static_cast<size_t>(end)];
    for (int begin = 0; begin < end; ++begin) {
      const Segment& next = segments_[static_cast<size_t>(begin)][static_cast<size_t>(end - begin - 1)];
      if (end - begin > 1 && next.works.empty()) continue;
      const auto& before = states[static_cast<size_t>(begin)];
      for (size_t i = 0; i < before.size(); ++i)
        if (next.peak - before[i].saved <= limit.count)
          here.push_back({before[i].saved + next.saved, before[i].seconds + next.seconds, begin, i});
    }
    std::ranges::stable_sort(here, [](const State& one, const State& other) {
      return one.seconds < other.seconds || (one.seconds == other.seconds && one.saved > other.saved);
    });
    int64_t most = std::numeric_limits<int64_t>::min();
    std::erase_if(here, [&](const State& state) {
      const bool worse = state.saved <= most;
      most = std::max(most, state.saved);
      return worse;
    });
    if (here.empty()) return std::nullopt;
    if (here.size() <= most_states) continue;
    choice.cheapest = false;
    std::vector<State> fewer;
    for (size_t i = 0; i < most_states; ++i) fewer.push_back(here[i * (here.size() - 1) / (most_states - 1)]);
    here = std::move(fewer);
  }
  size_t state = 0;  // the one that takes least
  choice.added = {states.back()[0].seconds};
  for (int end = count; end > 0;) {
    const State& last = states[static_cast<size_t>(end)][state];
    const Segment& taken =
        segments_[static_cast<size_t>(last.begin)][static_cast<size_t>(end - last.begin - 1)];
    for (int w : taken.works) choice.works.emplace_back(w);
    end = last.begin;
    state = last.before;
  }
  std::ranges::sort(choice.works);
  return choice;
}

Bytes RecomputeModel::least() const {
  int64_t low = 0, high = most_;
  while (high - low > std::max<int64_t>(1, most_ / 1000)) {
    const int64_t middle = low + (high - low) / 2;
    (cheapest({middle}) ? high : low) = middle;
  }
  return {high};
}

Seconds RecomputeModel::bound(Bytes limit) const {
  if (program_.forward_end >= std::ssize(program_.steps)) return {};
  double over = static_cast<double>(live_[StepIndex(program_.forward_end)] - limit.count), seconds = 0;
  std::vector<const Item*> items;
  for (const Item& item : items_)
    if (item.may_drop && item.bytes > 0) items.push_back(&item);
  const auto price = [](const Item* item) { return item->seconds / static_cast<double>(item->bytes); };
  std::ranges::sort(items, {}, price);
  for (const Item* item : items) {
    if (over <= 0) break;
    const double part = std::min(over, static_cast<double>(item->bytes));
    seconds += part * price(item);
    over -= part;
  }
  return {seconds};
}

bool RecomputeModel::is_chain() const {
  for (size_t w = 0; w < items_.size(); ++w) {
    if (!program_.works[WorkIndex(w)].is_layer()) continue;
    if (items_[w].high > static_cast<int>(w) + 1) return false;
  }
  return true;
}

}  // namespace cortado
