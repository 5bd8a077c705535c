#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/program/program.h"
#include "cortado/program/timeline.h"

namespace cortado {

// A step as a trace shows it.
struct TraceSlice {
  int rank = 0, step = 0;
  Lane lane = Lane::compute;
  std::string name, category;  // "conv1+relu1 forward", "forward"
  Seconds begin, end;
  std::string layer;     // "conv1+relu1", or the source of a load; empty: of none
  bool carried = false;  // may go on into the next iteration
  // When the compute lane stood still for it (program/exposure.h): not hidden, or waiting for a batch.
  std::vector<std::pair<Seconds, Seconds>> exposed;

  Seconds length() const { return end - begin; }
  Seconds exposed_length() const;
  bool loads() const { return category == "load"; }
  bool message() const { return lane == Lane::communication && !loads(); }
  bool operator==(const TraceSlice&) const = default;
};

// The entries of the program's rank. `iteration`: see exposures_of().
std::vector<TraceSlice> trace_slices(const Timeline& timeline, const Program& program, const Network& network,
                                     Seconds iteration = {});

// Writes slices as an array of JSON, for ranks that send theirs to one that writes all. parse_slices() reads
// it; it throws InternalError where the text is no such array.
std::string slices_text(std::span<const TraceSlice> slices);
std::vector<TraceSlice> parse_slices(const std::string& text);

// Chrome's trace events (the JSON object format, "Trace Event Format"), which Perfetto and chrome://tracing
// open: a process per rank, in it a thread for the compute lane and, as communication steps overlap, as many
// for the communication lane as run at a time. Times are microseconds. Each step is one complete event ("X");
// slices of a thread never overlap. An event's arguments are the number of its step, its layer and, where the
// compute lane stood still for it, for how long.
std::string trace_json(std::span<const TraceSlice> slices);

}  // namespace cortado
