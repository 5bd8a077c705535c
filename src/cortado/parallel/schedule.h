#pragma once

#include <string>
#include <string_view>

#include "cortado/base/units.h"

namespace cortado {

// Says which gradients are summed together, in backward order, as one message: a gradient chunk (Lee et al.
// 2017, section III.C). Gradients that are summed over unlike groups of devices never share a chunk.
//   parameter  each one alone
//   layer      those of a layer
//   first      those of the first `layers` layers, then all others (Algorithm 2: two chunks)
//   bytes      of so many bytes or more
//   one        all of them
struct GradientChunks {
  enum class Kind { parameter, layer, first, bytes, one };
  Kind kind = Kind::bytes;
  int layers = 0;
  Bytes bytes{int64_t{1} << 20};
  bool operator==(const GradientChunks&) const = default;
};

// How the messages of an iteration are arranged. It does not change what an iteration computes, except for
// the rounding of sums.
struct Schedule {
  GradientChunks chunks;
  // A parameter whose gradient is summed is updated before the next iteration's first use of it, so that the
  // last sums travel while that iteration's first layers compute.
  bool late_updates = true;
  // Halos travel in two messages, of half of the samples each: while one half is under way, the other is
  // computed.
  bool halves = false;
  bool operator==(const Schedule&) const = default;
};

// What a schedule either does or does not. Files and schedule_text() leave out what has no word.
struct ScheduleSwitch {
  std::string_view key;  // in files
  bool Schedule::*member = nullptr;
  std::string_view on, off;  // words of schedule_text()

  std::string_view word(const Schedule& schedule) const { return schedule.*member ? on : off; }
};
inline constexpr ScheduleSwitch schedule_switches[] = {
    {"late_updates", &Schedule::late_updates, "late updates", "updates at once"},
    {"halves", &Schedule::halves, "halves", ""}};

// "parameter", "layer", "first:3", "4MiB" (or B, KiB, GiB) or "one". Throws UserError that begins with
// `where`.
GradientChunks parse_chunks(const std::string& text, const std::string& where);
// "2GiB", "64MiB", "100KiB", "12B", or a number of bytes. Throws UserError that begins with `where`.
Bytes parse_size(const std::string& text, const std::string& where);
std::string chunks_text(const GradientChunks& chunks);
std::string schedule_text(const Schedule& schedule);  // "first:3, late updates, halves"

}  // namespace cortado
