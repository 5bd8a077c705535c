#include "cortado/report/run_page.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/advice.h"
#include "cortado/report/markup.h"
#include "cortado/report/run_page_parts.h"

namespace cortado {
namespace {

std::string tiles(const RunReport& report) {
  const RunTotals& totals = report.totals;
  const std::string of_rank = report.ranks > 1 ? " of rank\u00a00" : "";
  std::string text =
      "<ul class=\"tiles\">\n" + page_tile(short_milliseconds(report.step), "ms",
                                           report.drawn ? "an iteration, median" : "an iteration");
  if (report.images > 0) text += page_tile(short_number(report.images / report.step.count), "/ s", "samples");
  text += page_tile(short_milliseconds(totals.compute), "ms", "computing" + of_rank);
  if (report.ranks > 1) {
    text += page_tile(short_milliseconds(totals.communication), "ms", "communication" + of_rank);
    text += page_tile(short_milliseconds(totals.exposed), "ms", "of it exposed: computing waited");
    text += page_tile(overlap_text(totals), totals.overlap() ? "%" : "", "overlap ratio R");
    text += page_tile(short_bytes(report.bytes), "", "sent in an iteration, by all");
  }
  if (!report.simulated) text += page_tile(short_milliseconds(totals.data_wait), "ms", "waiting for data");
  if (const auto& prediction = report.prediction) {
    text += page_tile(short_milliseconds(prediction->step), "ms",
                      fmt::format("an iteration, simulated: {:+.1f}\u00a0%",
                                  100 * (prediction->step.count / report.step.count - 1)));
  }
  return text + "</ul>\n";
}

std::string formula(const RunReport& report) {
  if (report.ranks == 1) return "";
  return "<p class=\"note\">R = 100 \u00d7 \u03a3 (T<sub>c</sub> \u2212 T<sub>b</sub>) / \u03a3 "
         "T<sub>c</sub> is the share of communication that is hidden under computing (Lee et al., HiPC 2017, "
         "Eq. 11): T<sub>c</sub> is how long a message or collective took, T<sub>b</sub> for how long the "
         "compute lane stood still for it. Messages that overlap count one by one.</p>\n";
}

// What the figures mean, and how sure they are.
std::string meaning(const RunReport& report) {
  if (!report.drawn)
    return "<p>Simulated, message by message, from what the machine's file says; how true that is to a "
           "training "
           "depends on the file. With costs measured on the machine itself, simulations came mostly within a "
           "tenth of what ran (<code>cortado time --predict</code>).</p>\n";
  const RunReport::Drawn& drawn = *report.drawn;
  if (drawn.count == 1)
    return "<p>Figures are of one iteration alone; what else runs on the machine makes it longer.</p>\n";
  return fmt::format(
      "<p>Figures at the top are medians of {} iterations{}, each figure its own, so that they need not add "
      "up; "
      "half of the iterations took {} to {} ms. What else runs on the machine makes them longer.</p>\n",
      drawn.count, report.ranks > 1 ? " of rank 0" : "", short_milliseconds(drawn.lower),
      short_milliseconds(drawn.upper));
}

std::string row(const std::string& name, const RunTotals& totals) {
  return fmt::format("<tr><th scope=\"row\">{}</th>", name) +
         table_cell("ends, ms", short_milliseconds(totals.end)) +
         table_cell("computing, ms", short_milliseconds(totals.compute)) +
         table_cell("messages, ms", short_milliseconds(totals.communication)) +
         table_cell("exposed, ms", short_milliseconds(totals.exposed)) +
         table_cell("R, %", overlap_text(totals)) +
         table_cell("data wait, ms", short_milliseconds(totals.data_wait)) + "</tr>\n";
}

RunTotals mean(const std::vector<RunTotals>& all) {
  RunTotals sum;
  for (const RunTotals& one : all) {
    sum.end += one.end;
    sum.compute += one.compute;
    sum.communication += one.communication;
    sum.exposed += one.exposed;
    sum.data_wait += one.data_wait;
  }
  const auto share = [&](Seconds& seconds) { seconds.count /= static_cast<double>(all.size()); };
  share(sum.end), share(sum.compute), share(sum.communication), share(sum.exposed), share(sum.data_wait);
  return sum;
}

}  // namespace

std::string overlap_text(const RunTotals& totals) {
  const auto ratio = totals.overlap();
  return ratio ? fmt::format("{:.1f}", *ratio) : "none";
}

RankSlices slices_by_rank(const std::vector<TraceSlice>& slices) {
  RankSlices ranks;
  for (const TraceSlice& slice : slices) ranks[slice.rank].push_back(slice);
  return ranks;
}

std::string run_ranks_part(const RunReport& report) {
  if (report.ranks == 1) return "";
  std::string text =
      "<section id=\"ranks\">\n<h2>Rank by rank</h2>\n<p>Of the iteration that is drawn above.</p>\n"
      "<table>\n<thead><tr><th scope=\"col\"></th><th scope=\"col\">ends<br/>ms</th>"
      "<th scope=\"col\">computing<br/>ms</th><th scope=\"col\">messages<br/>ms</th>"
      "<th scope=\"col\">exposed<br/>ms</th><th scope=\"col\">R<br/>%</th><th scope=\"col\">data wait<br/>ms"
      "</th></tr></thead>\n<tbody>\n";
  std::vector<RunTotals> all;
  for (const auto& [rank, slices] : slices_by_rank(report.slices)) {
    all.push_back(totals_of(slices));
    if (all.size() <= shown_ranks) text += row(fmt::format("rank {}", rank), all.back());
  }
  return text + "</tbody>\n<tfoot>" + row(fmt::format("mean of {} ranks", all.size()), mean(all)) +
         "</tfoot>\n</table>\n</section>\n";
}

std::string run_page(const RunReport& report) {
  return page_head(fmt::format("{} on {} {}", report.net, report.ranks, report.ranks == 1 ? "rank" : "ranks"),
                   run_page_style) +
         fmt::format("<header>\n{}<p class=\"lead\">{}</p>\n", page_title(report.net, run_advice(report)),
                     escaped(report.about)) +
         tiles(report) + formula(report) + "</header>\n<main>\n" + lanes_part(report) + exposed_part(report) +
         predicted_part(report) + run_ranks_part(report) + "</main>\n" +
         page_foot(meaning(report), report.origin);
}

}  // namespace cortado
