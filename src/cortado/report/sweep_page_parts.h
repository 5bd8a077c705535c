#pragma once

#include <string>
#include <vector>

#include "cortado/report/sweep_report.h"

namespace cortado {

// Points that differ in the number of devices alone.
struct SweepSeries {
  std::string name;       // markup
  std::string css_class;  // "s0"
  std::vector<const plan::SweepPoint*> points;
};
std::vector<SweepSeries> series_of(const plan::Sweep& sweep);

// The point that the page advises to take; null: nothing fits.
const plan::SweepPoint* taken_point(const plan::Sweep& sweep);

// The parts of sweep_page(), each a section of HTML.
std::string speed_part(const SweepReport& report);   // a picture: images a second over devices
std::string shares_part(const SweepReport& report);  // what an iteration goes by, at each point
std::string points_part(const SweepReport& report);  // a table
std::string links_part(const SweepReport& report);   // what faster links would gain; empty: there are none
std::string smallest_part(const SweepReport& report);

}  // namespace cortado
