#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/report/curve.h"
#include "cortado/report/name_lines.h"
#include "cortado/report/run_page_parts.h"

namespace cortado {
namespace {

constexpr double lane_height = 22, lane_gap = 3;          // of the compute lane; below it the messages
constexpr double messages_height = 66, most_height = 14;  // of all lanes of messages, and of one
constexpr double wait_height = 10;                        // within the compute lane
constexpr double label_letter = 6.1;                      // about how wide one is
constexpr int most_lanes = 12;                            // of messages; more of them share the last one

const char* class_of(const TraceSlice& slice) {
  const std::string& kind = slice.category;
  if (slice.lane == Lane::communication) return slice.loads() ? "load" : "message";
  if (kind == "forward" || kind == "forward-partial") return "forward";
  if (kind == "backward" || kind == "backward-partial") return "backward";
  if (kind == "backward-weights") return "weights";
  return kind == "update" ? "update" : "other";
}

// A rectangle of the picture: one slice, or several that are too thin to be seen alone. Units: the picture's
// width.
struct Piece {
  const char* css_class;
  std::string title, label;
  double begin, end;
};

// A time axis: from 0 to `length`.
struct Axis {
  double length;
  double share(Seconds time) const { return std::clamp(time.count / length, 0.0, 1.0); }
};

std::string length_text(Seconds seconds) { return short_milliseconds(seconds) + " ms"; }

Piece piece_of(const TraceSlice& slice, const Axis& axis, Seconds shift) {
  std::string title = fmt::format("{}: {}", slice.name, length_text(slice.length()));
  const Seconds exposed = slice.exposed_length();
  if (exposed.count > 0) title += fmt::format(", {} of it exposed", length_text(exposed));
  return {class_of(slice), title, slice.layer.empty() ? slice.category : slice.layer,
          axis.share(slice.begin + shift), axis.share(slice.end + shift)};
}

// Adds a piece to a lane. Joins it to the one before if both are too thin to be seen.
void add(std::vector<Piece>& lane, Piece piece) {
  constexpr double thin = 4e-4;
  if (piece.end <= piece.begin) return;
  if (!lane.empty()) {
    Piece& last = lane.back();
    const bool same_class = std::string_view(last.css_class) == piece.css_class;
    if (same_class && piece.end - piece.begin < thin && last.end - last.begin < 4 * thin &&
        piece.begin - last.end < thin) {
      last.end = std::max(last.end, piece.end);
      last.title += "; " + piece.title;
      last.label.clear();
      return;
    }
  }
  lane.push_back(std::move(piece));
}

// A rank's lanes: computing with its waits, then as many as messages overlap.
class Lanes {
 public:
  Lanes(const std::vector<TraceSlice>& slices, const Axis& axis, Seconds iteration) {
    std::vector<Piece> messages;
    std::vector<const TraceSlice*> ordered;
    for (const TraceSlice& slice : slices) ordered.push_back(&slice);
    std::ranges::stable_sort(ordered, {}, [](const TraceSlice* slice) { return slice->begin; });
    for (const TraceSlice* slice : ordered) {
      if (slice->lane == Lane::compute) {
        add(compute_, piece_of(*slice, axis, {}));
        continue;
      }
      messages.push_back(piece_of(*slice, axis, {}));
      // A message that goes on into the next iteration also comes from the one before: it is drawn at both
      // ends.
      if (slice->carried)
        for (const Seconds shift : {iteration, Seconds{} - iteration})
          messages.push_back(piece_of(*slice, axis, shift));
      for (const auto& [begin, end] : slice->exposed)
        waits_.push_back({slice->loads() ? "wait data" : "wait",
                          fmt::format("computing waits for {}: {}", slice->name, length_text(end - begin)),
                          "", axis.share(begin), axis.share(end)});
    }
    std::ranges::stable_sort(messages, {}, &Piece::begin);
    for (Piece& message : messages) place(std::move(message));
  }

  std::string picture(const std::string& label, const std::vector<double>& ticks) const {
    const double height = messages_.empty() ? 0 : message_height();
    const double whole =
        lane_height + (messages_.empty() ? 0 : lane_gap + height * static_cast<double>(messages_.size()));
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" style=\"height:{:.1f}px\" role=\"img\" aria-label=\"{}\">",
        whole, label);
    for (double tick : ticks)
      text += fmt::format("<rect class=\"grid\" x=\"{:.3f}%\" width=\"1\" height=\"{:.1f}\"/>", 100 * tick,
                          whole);
    for (const Piece& piece : compute_) text += drawn(piece, 0, lane_height);
    for (const Piece& piece : waits_) text += drawn(piece, (lane_height - wait_height) / 2, wait_height);
    for (size_t lane = 0; lane < messages_.size(); ++lane)
      for (const Piece& piece : messages_[lane])
        text += drawn(piece, lane_height + lane_gap + static_cast<double>(lane) * height, height - 1);
    return text + "</svg>";
  }

 private:
  double message_height() const {
    return std::min(most_height, messages_height / static_cast<double>(messages_.size()));
  }

  // Puts the piece into the first lane that is free; if none is and no more fit, into the last one.
  void place(Piece piece) {
    if (piece.end <= piece.begin) return;
    auto lane = std::ranges::find_if(
        messages_, [&](const std::vector<Piece>& of) { return of.back().end <= piece.begin; });
    if (lane == messages_.end()) {
      if (messages_.size() < most_lanes) messages_.emplace_back();
      lane = messages_.end() - 1;
    }
    add(*lane, std::move(piece));
  }

  // Draws the piece, with its label where that fits: on any page (wide0), on all but phones (wide1), on wide
  // ones (wide2).
  static std::string drawn(const Piece& piece, double y, double height) {
    const double share = piece.end - piece.begin;
    const std::string title = fmt::format("<title>{}</title>", escaped(piece.title));
    const auto width_for = [&](const std::string& label) {
      const double needs = label_letter * static_cast<double>(letters_of(label)) + 7;
      return share * 325 >= needs ? 0 : share * 590 >= needs ? 1 : share * 990 >= needs ? 2 : 3;
    };
    // If a chain's label does not fit, show its first layer.
    std::string label = piece.label;
    if (width_for(label) == 3) label = label.substr(0, label.find('+'));
    const int wide = width_for(label);
    if (label.empty() || height < 10 || wide == 3)
      return fmt::format(
          "<rect class=\"{}{}\" x=\"{:.3f}%\" y=\"{:.1f}\" width=\"{:.3f}%\" height=\"{:.1f}\">{}</rect>",
          piece.css_class, share < 0.004 ? " thin" : "", 100 * piece.begin, y, 100 * share, height, title);
    return fmt::format(
        "<svg x=\"{:.3f}%\" y=\"{:.1f}\" width=\"{:.3f}%\" height=\"{:.1f}\"><rect class=\"{}\" "
        "width=\"100%\" height=\"100%\">{}</rect><text class=\"wide{}\" x=\"4\" y=\"{:.1f}\">{}</text></svg>",
        100 * piece.begin, y, 100 * share, height, piece.css_class, title, wide, height / 2 + 3.6,
        escaped(label));
  }

  std::vector<Piece> compute_, waits_;
  std::vector<std::vector<Piece>> messages_;
};

// Positions of the ticks, as shares of the axis.
std::vector<double> ticks_of(const Axis& axis) {
  std::vector<double> ticks;
  for (double tick : round_ticks(0, 1e3 * axis.length, 6))
    if (tick > 0 && tick < 1e3 * axis.length) ticks.push_back(tick / 1e3 / axis.length);
  return ticks;
}

std::string axis_row(const Axis& axis, const std::vector<double>& ticks) {
  std::string text =
      "<li class=\"axis\"><span class=\"of\">ms</span><svg xmlns=\"http://www.w3.org/2000/svg\" "
      "style=\"height:16px\" role=\"img\" aria-label=\"time in milliseconds\"><text x=\"0\" "
      "y=\"12\">0</text>";
  for (double tick : ticks) {
    const char* where = tick > 0.94 ? "end" : "middle";
    text += fmt::format("<text class=\"{}\" x=\"{:.3f}%\" y=\"12\">{:g}</text>", where, 100 * tick,
                        std::round(1e6 * tick * axis.length * 1e3) / 1e6);
  }
  return text + "</svg></li>\n";
}

// Returns the latest end of all ranks.
Seconds end_of(const std::vector<TraceSlice>& slices) {
  Seconds end;
  for (const auto& [rank, own] : slices_by_rank(slices)) end = std::max(end, totals_of(own).end);
  return end;
}

std::string rank_row(const std::string& name, const char* kind, const Lanes& lanes,
                     const std::vector<double>& ticks) {
  const std::string label = fmt::format("{}{}", name, kind);
  return fmt::format("<li class=\"{}\"><span class=\"of\">{}{}</span>{}</li>\n",
                     std::string_view(kind) == ", simulated" ? "simulated" : "shown", name, kind,
                     lanes.picture(label, ticks));
}

// Says which iteration is drawn.
std::string drawn_text(const RunReport& report) {
  if (!report.drawn) return "The iteration of the figures above.";
  const RunReport::Drawn& drawn = *report.drawn;
  return fmt::format("Iteration {} of {}, which took <b>{} ms</b>: {:.2f} times the median above.",
                     drawn.number, drawn.count, short_milliseconds(drawn.step),
                     drawn.step.count / report.step.count);
}

const char* const lanes_legend =
    "<ul class=\"legend\"><li><i class=\"swatch forward\"></i>forward</li><li><i class=\"swatch "
    "backward\"></i>"
    "backward</li><li><i class=\"swatch weights\"></i>gradient of weights</li><li><i class=\"swatch "
    "update\"></i>"
    "update</li><li><i class=\"swatch other\"></i>sums of tensors</li><li><i class=\"swatch "
    "message\"></i>message "
    "or collective</li><li><i class=\"swatch load\"></i>batch</li><li><i class=\"swatch wait\"></i>computing "
    "waits</li></ul>\n";

}  // namespace

std::string lanes_part(const RunReport& report) {
  const RankSlices ranks = slices_by_rank(report.slices);
  const RankSlices simulated = report.prediction ? slices_by_rank(report.prediction->slices) : RankSlices{};
  const size_t shown = report.prediction ? shown_ranks / 2 : shown_ranks;
  const Seconds end = report.simulated ? report.step : end_of(report.slices);
  const Seconds simulated_end = report.prediction ? report.prediction->step : Seconds{};
  const Axis axis{std::max({end, simulated_end, Seconds{1e-12}}).count};
  const std::vector<double> ticks = ticks_of(axis);
  std::string rows = axis_row(axis, ticks);
  for (const auto& [rank, slices] : ranks) {
    if (static_cast<size_t>(rank) >= shown) break;
    const std::string name = fmt::format("rank {}", rank);
    rows += rank_row(name, "", Lanes(slices, axis, end), ticks);
    const auto other = simulated.find(rank);
    if (other != simulated.end())
      rows += rank_row(name, ", simulated", Lanes(other->second, axis, simulated_end), ticks);
  }
  std::string about =
      drawn_text(report) +
      " For each rank the compute lane, and below it the communication lane, in as many rows as "
      "messages overlap.";
  if (report.prediction) about += " Below what ran stands what the simulator says of the same programs.";
  if (!report.simulated && report.ranks > 1) about += " Each rank counts from its own start.";
  const auto carries = [](const TraceSlice& slice) { return slice.carried; };
  if (std::ranges::any_of(report.slices, carries))
    about +=
        " Sums of gradients that go on into the next iteration are drawn at both ends: as they end, and as "
        "they begin.";
  if (ranks.size() > shown)
    about += fmt::format(" Shown are {} of {} ranks; a trace (--trace) has all.", shown, ranks.size());
  return "<section id=\"lanes\">\n<h2>Timeline</h2>\n<p>" + about + "</p>\n" + lanes_legend +
         "<ul class=\"bars lanes\">\n" + rows + "</ul>\n</section>\n";
}

}  // namespace cortado
