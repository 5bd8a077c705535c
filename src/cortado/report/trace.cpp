#include "cortado/report/trace.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/program/exposure.h"

namespace cortado {
namespace {

using Json = nlohmann::ordered_json;

std::string step_name(const Program& program, const Network& network, const Step& step) {
  const std::string_view kind = name_of(program, step);
  if (!step.parameters().empty()) return fmt::format("{} {}", parameters_text(network, step), kind);
  if (!step.work()) return std::string(kind);
  return fmt::format("{} {}", name_of(program.works[step.work()], network), kind);
}

std::string layer_name(const Program& program, const Network& network, const Step& step) {
  const WorkIndex work = step.is<steps::Load>() ? step.work() : layer_work(program, step);
  return work ? name_of(program.works[work], network) : "";
}

Json name_event(const char* what, int process, int thread, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

// Gives slices of a rank their threads: 0 to computing, to each message the first that is free.
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

Seconds TraceSlice::exposed_length() const {
  Seconds sum;
  for (const auto& [from, to] : exposed) sum += to - from;
  return sum;
}

std::vector<TraceSlice> trace_slices(const Timeline& timeline, const Program& program, const Network& network,
                                     Seconds iteration) {
  Timeline own;
  std::ranges::copy_if(timeline, std::back_inserter(own),
                       [&](const TimelineEntry& entry) { return entry.rank == program.rank; });
  std::vector<TraceSlice> slices;
  for (const TimelineEntry& entry : own) {
    const Step& step = program.steps[entry.step];
    slices.push_back({.rank = entry.rank,
                      .step = entry.step.value(),
                      .lane = entry.lane,
                      .name = step_name(program, network, step),
                      .category = std::string(name_of(program, step)),
                      .begin = entry.begin,
                      .end = entry.end,
                      .layer = layer_name(program, network, step),
                      .carried = step.carried,
                      .exposed = {}});
  }
  for (const Exposure& exposure : exposures_of(program, own, iteration))
    slices[static_cast<size_t>(exposure.step.value())].exposed.push_back({exposure.begin, exposure.end});
  return slices;
}

std::string slices_text(std::span<const TraceSlice> slices) {
  Json list = Json::array();
  for (const TraceSlice& slice : slices) {
    Json exposed = Json::array();
    for (const auto& [begin, end] : slice.exposed) exposed.push_back({begin.count, end.count});
    list.push_back({slice.rank, slice.step, slice.lane == Lane::compute, slice.name, slice.category,
                    slice.begin.count, slice.end.count, slice.layer, slice.carried, exposed});
  }
  return list.dump();
}

std::vector<TraceSlice> parse_slices(const std::string& text) {
  std::vector<TraceSlice> slices;
  try {
    for (const Json& one : Json::parse(text)) {
      slices.push_back({.rank = one.at(0),
                        .step = one.at(1),
                        .lane = one.at(2).get<bool>() ? Lane::compute : Lane::communication,
                        .name = one.at(3),
                        .category = one.at(4),
                        .begin = {one.at(5)},
                        .end = {one.at(6)},
                        .layer = one.at(7),
                        .carried = one.at(8),
                        .exposed = {}});
      for (const Json& stretch : one.at(9))
        slices.back().exposed.push_back({{stretch.at(0)}, {stretch.at(1)}});
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
    Json about{{"step", slice.step}};
    if (!slice.layer.empty()) about["layer"] = slice.layer;
    if (!slice.exposed.empty()) about["exposed_us"] = 1e6 * slice.exposed_length().count;
    events.push_back({{"ph", "X"},
                      {"name", slice.name},
                      {"cat", slice.category},
                      {"pid", slice.rank},
                      {"tid", ranks[slice.rank].thread_of(slice)},
                      {"ts", 1e6 * slice.begin.count},
                      {"dur", 1e6 * slice.length().count},
                      {"args", std::move(about)}});
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
