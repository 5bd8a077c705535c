#pragma once

#include <string>
#include <vector>

#include "cortado/report/config_colours.h"
#include "cortado/report/markup.h"
#include "cortado/report/plan_report.h"

namespace cortado {

// Groups that a picture shows as one: a layer, and those behind it that keep its shape and its cut.
struct PageUnit {
  std::vector<size_t> groups;
};
std::vector<PageUnit> units_of(const PlanReport& report);

// The parts of plan_page(), each a section of HTML, and what they share.
struct PlanPage {
  const PlanReport& report;
  ConfigColours colours;
  std::vector<PageUnit> units;

  const plan::Plan& plan() const { return report.plan; }
  // Escaped; the first layer's alone, or all of them.
  std::string first_name(const plan::PlannedGroup& group) const;
  std::string name(const plan::PlannedGroup& group) const;
  std::string name(const PageUnit& unit) const;
  // A coloured label of a configuration: "n4 on 0-3".
  std::string chip(const ParallelConfig& config) const;
};

std::string graph_part(const PlanPage& page);     // the network, coloured by configuration
std::string totals_part(const PlanPage& page);    // the plan's and the baselines' totals
std::string bars_part(const PlanPage& page);      // per layer, beside a baseline
std::string devices_part(const PlanPage& page);   // what each device computes
std::string layers_part(const PlanPage& page);    // the layers one by one
std::string frontier_part(const PlanPage& page);  // empty where none was asked for

extern const char* const plan_page_style;  // plan_page.css

// Three figures or so: "0.123", "12.3", "1,234"; milliseconds and MiB or GiB.
std::string short_number(double number);
std::string short_milliseconds(Seconds seconds);
std::string short_bytes(double bytes);

// The three parts of a layer's time as rectangles one after the other, from x = 0, `scale` to a second, of
// the classes compute, sync and transfer. What lies behind `limit` is cut off.
std::string stacked_bar(Seconds compute, Seconds sync, Seconds transfer, double scale, double limit, double y,
                        double height);

// The legend of those classes.
std::string time_legend();

}  // namespace cortado
