#pragma once

#include <string>

#include "cortado/plan/planner.h"
#include "cortado/report/run_report.h"

namespace cortado {

// What pages begin with: one sentence that says what to do, from the figures that they show.

// Two ways to train are about as fast when one takes at most so many times longer.
inline constexpr double about_as_fast = 1.02;
// `strategy_file`: the plan's file, quoted for a shell; empty: none was written.
std::string plan_advice(const plan::Plan& plan, int devices, const std::string& strategy_file);

// Shares of an iteration. A rank that computes less than `idle_share` is idle. Ranks are unequal when the
// busiest computes more than the mean by `unequal_share`. Waiting limits an iteration from `waiting_share`
// on, and what lies between its steps from `between_share` on.
inline constexpr double idle_share = 0.01, unequal_share = 0.1, waiting_share = 0.1, between_share = 0.2;
// Below this share of waiting for messages a faster network does not help.
inline constexpr double slight_share = 0.03;
// Advises from the iteration that is drawn and the mean of the ranks.
std::string run_advice(const RunReport& report);

}  // namespace cortado
