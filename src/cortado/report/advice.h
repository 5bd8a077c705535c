#pragma once

#include <string>

#include "cortado/plan/planner.h"
#include "cortado/report/run_report.h"

namespace cortado {

// What pages begin with: one sentence that says what to do, from the figures that they show.

// Two ways to train are about as fast when one takes at most so many times longer.
inline constexpr double about_as_fast = 1.02;
// `strategy_file`: of the plan, as a shell takes it; empty: it was not written.
std::string plan_advice(const plan::Plan& plan, int devices, const std::string& strategy_file);

// Shares of an iteration. A rank that computes less is idle; ranks are unequal when the busiest computes so
// much more than the mean; so much waiting limits an iteration; so much of it lies between its steps.
inline constexpr double idle_share = 0.01, unequal_share = 0.1, waiting_share = 0.1, between_share = 0.2;
// Less waiting for messages than this is next to none.
inline constexpr double slight_share = 0.03;
// Advises from the iteration that is drawn and the mean of the ranks.
std::string run_advice(const RunReport& report);

}  // namespace cortado
