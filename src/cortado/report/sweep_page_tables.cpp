#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/markup.h"
#include "cortado/report/sweep_page_parts.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using plan::Sweep;
using plan::SweepPoint;

std::string devices_text(const SweepPoint& point) { return counted(point.devices, "device"); }

std::string row_class(const SweepPoint& point, const SweepPoint* taken) {
  return !point.fits() ? " class=\"misfit\"" : &point == taken ? " class=\"taken\"" : "";
}

std::string share_row(const SweepPoint& point, const SweepPoint* taken) {
  std::string bar, value;
  if (point.fits()) {
    bar = stacked_bar(point.parts.compute, point.parts.sync, point.parts.exchange,
                      bar_width / point.seconds().count, bar_width, 0, 18);
    value = fmt::format("{}{} ms, bound by <b>{}</b>",
                        point.simulated ? "" : "added up: ", short_milliseconds(point.seconds()),
                        bound_text(point));
  } else {
    value = fmt::format("<em>{}</em>", bound_text(point));
  }
  return fmt::format("<li{}><span class=\"of\">{}</span>{}<span class=\"value\">{}</span></li>\n",
                     row_class(point, taken), devices_text(point),
                     bar_picture(18, "compute, sums and transfers", bar), value);
}

std::string point_row(const Sweep& sweep, const SweepPoint& point, const SweepPoint* taken) {
  std::string text =
      fmt::format("<tr{}><th scope=\"row\">{}</th>", row_class(point, taken), devices_text(point));
  const bool fits = point.fits();
  const auto cell = [&](const char* label, const std::string& value) {
    text += table_cell(label, fits ? value : std::string());
  };
  cell("iteration, ms", short_milliseconds(point.seconds()));
  cell("images a second", fits ? short_number(point.images_per_second()) : "");
  cell("efficiency, %", fmt::format("{:.0f}", 100 * point.efficiency));
  cell("a device holds", short_bytes(static_cast<double>(point.memory.count)));
  if (sweep.priced()) {
    text += table_cell("an hour", short_number(point.price_per_hour));
    cell("a million images", fits ? short_number(point.price_per_million()) : "");
  }
  text += table_cell("bound by", bound_text(point));
  cell("faster links save", escaped(gain_text(point)));
  cell("how", point.simulated ? "simulated" : "added up");
  return text + "</tr>\n";
}

std::string column_heads(const std::vector<std::string>& titles) {
  std::string text = "<thead><tr>";
  for (const std::string& title : titles) text += fmt::format("<th scope=\"col\">{}</th>", title);
  return text + "</tr></thead>";
}

}  // namespace

std::vector<SweepSeries> series_of(const Sweep& sweep) {
  constexpr size_t colours = 6;
  std::vector<SweepSeries> series;
  std::string last;
  for (const SweepPoint& point : sweep.points) {
    const std::string name = series_name(sweep, point);
    if (series.empty() || name != last)
      series.push_back({escaped(name), fmt::format("s{}", series.size() % colours), {}});
    last = name;
    series.back().points.push_back(&point);
  }
  return series;
}

std::string shares_part(const SweepReport& report) {
  const SweepPoint* taken = taken_point(report.sweep);
  std::string text =
      "<section id=\"shares\">\n<h2>What an iteration goes by</h2>\n<p>Each bar is one iteration: the share "
      "in "
      "which devices compute, and those in which they wait for sums of gradients and for transfers. Where "
      "memory bounds, faster cuts do not fit.</p>\n" +
      time_legend();
  for (const SweepSeries& series : series_of(report.sweep)) {
    text += fmt::format("<h3>{}</h3>\n<ul class=\"bars sweep\">\n", series.name);
    for (const SweepPoint* point : series.points) text += share_row(*point, taken);
    text += "</ul>\n";
  }
  return text + "</section>\n";
}

std::string points_part(const SweepReport& report) {
  const Sweep& sweep = report.sweep;
  std::vector<std::string> titles{"devices",        "iteration, ms", "images a second",   "efficiency, %",
                                  "a device holds", "bound by",      "faster links save", "how"};
  if (sweep.priced()) titles.insert(titles.begin() + 5, {"an hour", "a million images"});
  std::string text = fmt::format(
      "<section id=\"points\">\n<h2>All figures</h2>\n<p><b>Efficiency</b>: what a device gives, against one "
      "of "
      "the smallest number in its table. <b>Faster links save</b>: how much shorter an iteration is with "
      "those links twice as fast that gain most.</p>\n");
  for (const SweepSeries& series : series_of(sweep)) {
    text += fmt::format("<h3>{}</h3>\n<div class=\"points\"><table>{}<tbody>\n", series.name,
                        column_heads(titles));
    for (const SweepPoint* point : series.points) text += point_row(sweep, *point, taken_point(sweep));
    text += "</tbody></table></div>\n";
  }
  return text + "</section>\n";
}

std::string links_part(const SweepReport& report) {
  const Sweep& sweep = report.sweep;
  const std::string answer = link_answer(sweep);
  if (answer.empty()) return "";
  std::string text = fmt::format(
      "<section id=\"links\">\n<h2>Which link would pay</h2>\n<p>{}.</p>\n<p class=\"note\">network: between "
      "nodes, with their interfaces. group-K: within nodes, between devices of a block of K. Savings of an "
      "iteration, by links made twice as fast.</p>\n",
      escaped(answer));
  for (const SweepSeries& series : series_of(sweep)) {
    const auto most =
        std::ranges::max_element(series.points, {}, [](const SweepPoint* p) { return p->gains.size(); });
    if ((*most)->gains.empty()) continue;
    std::vector<std::string> titles{"devices"};
    for (const plan::LinkGain& gain : (*most)->gains) titles.push_back(escaped(gain.links.name));
    text += fmt::format("<h3>{}</h3>\n<div class=\"points\"><table>{}<tbody>\n", series.name,
                        column_heads(titles));
    for (const SweepPoint* point : series.points) {
      if (point->gains.empty()) continue;
      text += fmt::format("<tr><th scope=\"row\">{}</th>", devices_text(*point));
      for (const plan::LinkGain& of : (*most)->gains) {
        const auto own = std::ranges::find(point->gains, of.links.name,
                                           [](const plan::LinkGain& gain) { return gain.links.name; });
        const std::string label = escaped(of.links.name);
        text += table_cell(
            label.c_str(),
            own == point->gains.end()
                ? std::string()
                : fmt::format("{:.0f} %", 100 * (1 - own->seconds.count / point->seconds().count)));
      }
      text += "</tr>\n";
    }
    text += "</tbody></table></div>\n";
  }
  return text + "</section>\n";
}

std::string smallest_part(const SweepReport& report) {
  std::string text = "<section id=\"smallest\">\n<h2>The smallest machine that fits</h2>\n<ul>\n";
  for (const plan::SmallestMachine& smallest : report.sweep.smallest)
    text += fmt::format("<li>{}.</li>\n", escaped(smallest_answer(report.sweep, smallest)));
  return text + "</ul>\n</section>\n";
}

}  // namespace cortado
