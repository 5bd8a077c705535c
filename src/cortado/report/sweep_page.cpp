#include <fmt/format.h>

#include "cortado/report/markup.h"
#include "cortado/report/sweep_page_parts.h"
#include "cortado/report/table.h"

namespace cortado {
namespace {

using plan::Sweep;
using plan::SweepPoint;

std::string sweep_tiles(const Sweep& sweep) {
  std::string text = "<ul class=\"tiles\">\n";
  if (const SweepPoint* fastest = plan::fastest(sweep))
    text += page_tile(short_number(fastest->images_per_second()), "images / s",
                      "at most: " + escaped(point_name(sweep, *fastest)));
  if (const SweepPoint* cheapest = plan::cheapest(sweep)) {
    text += page_tile(short_number(cheapest->price_per_million()), "a million images",
                      "at least: " + escaped(point_name(sweep, *cheapest)));
    text += page_tile(short_number(cheapest->price_per_hour), "an hour", "the price of those devices");
  }
  for (const plan::SmallestMachine& smallest : sweep.smallest) {
    if (smallest.devices > 0)
      text += page_tile(fmt::format("{}", smallest.devices), smallest.devices == 1 ? "device" : "devices",
                        "at least, to hold batch " + smallest.batch.text());
  }
  return text + "</ul>\n";
}

std::string sweep_head(const Sweep& sweep) {
  return fmt::format(
      "<header>\n{}<p class=\"lead\">planned for {} of machine <b>{}</b>, {} to a device</p>\n{}</header>\n",
      page_title(sweep.net, sweep_advice(sweep)), counted(std::ssize(sweep.points), "choice"),
      escaped(sweep.machine), plan::gibibytes(sweep.memory_limit), sweep_tiles(sweep));
}

std::string sweep_foot(const SweepReport& report) {
  std::string meaning =
      "<p>At each point the net is cut in the cheapest way for these devices, then an iteration is "
      "simulated, "
      "message by message, by what the machine's file says. How true that is to a training depends on the "
      "file: compare points with each other, and time a training before you sign. ";
  meaning +=
      "A point that is <i>added up</i> has too many devices to simulate: its parts are added as if no "
      "message "
      "were hidden under computing, so that it is faster in truth. ";
  meaning +=
      report.sweep.priced()
          ? "Prices are those of the machine's file, in its currency; a node is paid for as a whole."
          : "The machine's file says no prices: with <code>price_per_hour</code> of a device or a node "
            "this page says what images cost.";
  return page_foot(meaning + "</p>\n", report.origin);
}

}  // namespace

std::string sweep_page(const SweepReport& report) {
  return page_head(fmt::format("{} on {}", report.sweep.net, report.sweep.machine), sweep_page_style) +
         sweep_head(report.sweep) + "<main>\n" + speed_part(report) + shares_part(report) +
         points_part(report) + links_part(report) + smallest_part(report) + "</main>\n" + sweep_foot(report);
}

}  // namespace cortado
