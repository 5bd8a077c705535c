#pragma once

#include <string>
#include <vector>

#include "cortado/report/config_colours.h"
#include "cortado/report/markup.h"
#include "cortado/report/page.h"
#include "cortado/report/plan_report.h"

namespace cortado {

// Groups that a picture shows as one: a layer, and those after it that keep its shape and its cut.
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

}  // namespace cortado
