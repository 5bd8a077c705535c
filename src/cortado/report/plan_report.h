#pragma once

#include <string>

#include "cortado/machine/device_graph.h"
#include "cortado/net/network.h"
#include "cortado/plan/planner.h"
#include "cortado/report/net_report.h"
#include "cortado/report/page.h"

namespace cortado {

// All that reports of a plan show.
struct PlanReport {
  const Network& network;
  const DeviceGraph& machine;
  const plan::Plan& plan;
  std::string strategy_file = {};  // that holds it, as a shell takes the name; empty: none was written
  PageOrigin origin = {};          // of the page
};

// Text for a terminal: a table of the layers, the baselines, and how the plan was found.
std::string plan_text(const PlanReport& report);

// All figures, with the units in the keys (docs/reference/output.md).
std::string plan_json(const PlanReport& report);

// A self-contained page of HTML that is also well-formed XML: the network coloured by configuration, bars of
// the layers' costs beside the baselines', the layers one by one, what each device computes, the frontier.
std::string plan_page(const PlanReport& report);

// The terms and names that text, JSON and page share.
Seconds compute_of(const plan::PlannedGroup& group);   // with the updates
Seconds sync_of(const plan::PlannedGroup& group);      // sums of gradients
Seconds transfer_of(const plan::PlannedGroup& group);  // of tensors and partial sums
Seconds sum_of(const plan::Assignment& assignment, Seconds (*part)(const plan::PlannedGroup&));
std::string name_of(const Network& network, const plan::PlannedGroup& group);  // "conv1 + relu1"
std::string verdict_of(const plan::Plan& plan);             // "optimal", "at most 1.2 % above the optimum"
std::string percent_above(Seconds seconds, Seconds bound);  // "1.2 %", "240 %"

}  // namespace cortado
