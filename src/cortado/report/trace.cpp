#include "cortado/report/trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

std::string step_name(const Program& program, const Network& network, const Step& step) {
  const std::string_view kind = name_of(program, step);
  if (!step.parameters.empty()) return fmt::format("{} {}", parameters_text(network, step), kind);
  if (step.work < 0) return std::string(kind);
  return fmt::format("{} {}", name_of(program.works[static_cast<size_t>(step.work)], network), kind);
}

Json name_event(const char* what, int process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

// Threads of a rank: compute, then communication; each with the end of what stands there last.
class Threads {
 public:
  int thread_of(const TraceSlice& slice) {
    if (slice.lane == Lane::compute) return 0;
    const auto free = std::ranges::find_if(ends_, [&](Seconds end) { return end <= slice.begin; });
    const int thread = 1 + static_cast<int>(free - ends_.begin());
    if (free == ends_.end()) {
      ends_.push_back(slice.end);
    } else {
      *free = slice.end;
    }
    return thread;
  }
  int communication_threads() const { return static_cast<int>(ends_.size()); }

 private:
  std::vector<Seconds> ends_;
};

}  // namespace

std::vector<TraceSlice> trace_slices(const Timeline& timeline, const Program& program,
                                     const Network& network) {
  std::vector<TraceSlice> slices;
  for (const TimelineEntry& entry : timeline) {
    if (entry.rank != program.rank) continue;
    const Step& step = program.steps[static_cast<size_t>(entry.step)];
    slices.push_back({entry.rank, entry.step, entry.lane, step_name(program, network, step),
                      std::string(name_of(program, step)), entry.begin, entry.end});
  }
  return slices;
}

std::string slices_text(std::span<const TraceSlice> slices) {
  Json list = Json::array();
  for (const TraceSlice& slice : slices) {
    list.push_back({slice.rank, slice.step, slice.lane == Lane::compute, slice.name, slice.category,
                    slice.begin.count, slice.end.count});
  }
  return list.dump();
}

std::vector<TraceSlice> parse_slices(const std::string& text) {
  std::vector<TraceSlice> slices;
  try {
    for (const Json& one : Json::parse(text)) {
      slices.push_back({one.at(0),
                        one.at(1),
                        one.at(2).get<bool>() ? Lane::compute : Lane::communication,
                        one.at(3),
                        one.at(4),
                        {one.at(5)},
                        {one.at(6)}});
    }
  } catch (const Json::exception& error) {
    throw InternalError(fmt::format("slices of a trace: {}", error.what()));
  }
  return slices;
}

std::string trace_json(std::span<const TraceSlice> slices) {
  std::vector<TraceSlice> ordered(slices.begin(), slices.end());
  std::ranges::stable_sort(ordered, {}, &TraceSlice::begin);
  Json events = Json::array();
  std::map<int, Threads> ranks;
  for (const TraceSlice& slice : ordered) {
    events.push_back({{"ph", "X"},
                      {"name", slice.name},
                      {"cat", slice.category},
                      {"pid", slice.rank},
                      {"tid", ranks[slice.rank].thread_of(slice)},
                      {"ts", 1e6 * slice.begin.count},
                      {"dur", 1e6 * (slice.end - slice.begin).count},
                      {"args", {{"step", slice.step}}}});
  }
  for (const auto& [rank, threads] : ranks) {
    events.push_back(name_event("process_name", rank, 0, fmt::format("rank {}", rank)));
    events.push_back(name_event("thread_name", rank, 0, "compute"));
    for (int thread = 1; thread <= threads.communication_threads(); ++thread)
      events.push_back(name_event("thread_name", rank, thread, "communication"));
  }
  return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(1) + "\n";
}

}  // namespace cortado
