#pragma once

#include <optional>

#include "cortado/api/strategy.h"
#include "cortado/parallel/schedule_changes.h"
#include "cortado/parallel/strategy.h"

namespace cortado::api {

ScheduleChanges changes_of(const Schedule& said);

struct Strategy::Impl {
  std::string name;                         // as it was given; empty: none was
  std::optional<cortado::Strategy> parsed;  // of a text or a plan
  std::vector<Schedule> schedules;          // what replaces the strategy's own, in order

  std::string name_on(int ranks) const;  // "auto" or "single" where none was given
  // Loads a strategy of any name but `auto`.
  cortado::Strategy load(const cortado::Network& network, int ranks) const;
  void apply_schedules(const cortado::Network& network, cortado::Strategy& strategy) const;
};

}  // namespace cortado::api
