#include "cortado/api/strategy.h"

#include "cortado/api/impl/network.h"
#include "cortado/api/impl/strategy.h"
#include "cortado/base/error.h"
#include "cortado/parallel/schedule_changes.h"

namespace cortado::api {
std::string Strategy::Impl::name_on(int ranks) const {
  if (!name.empty()) return name;
  return ranks > 1 ? "auto" : "single";
}

cortado::Strategy Strategy::Impl::load(const cortado::Network& network, int ranks) const {
  cortado::Strategy strategy = parsed ? *parsed : load_strategy(name_on(ranks), network, ranks);
  apply_schedules(network, strategy);
  return strategy;
}

void Strategy::Impl::apply_schedules(const cortado::Network& network, cortado::Strategy& strategy) const {
  static_assert(member_count<Schedule>() == member_count<ScheduleChanges>());
  for (const Schedule& said : schedules) apply(changes_of(said), network, strategy, as_field);
}

ScheduleChanges changes_of(const Schedule& said) {
  return {said.gradient_chunks, said.no_late_updates, said.halves,
          said.replicate,       said.recompute,       said.memory_limit};
}

Strategy::Strategy() : Strategy(std::string()) {}
Strategy::Strategy(const std::string& name_or_file)
    : impl_(std::make_shared<const Impl>(Impl{name_or_file, {}, {}})) {}

Strategy Strategy::from_text(const std::string& json, const std::string& name_in_errors) {
  return Strategy(
      std::make_shared<const Impl>(Impl{name_in_errors, parse_strategy(json, name_in_errors), {}}));
}

std::vector<std::string> Strategy::built_in() {
  const std::vector<std::string_view> names = built_in_strategies();
  return {names.begin(), names.end()};
}

Strategy Strategy::with(const Schedule& schedule) const {
  Impl impl = *impl_;
  impl.schedules.push_back(schedule);
  return Strategy(std::make_shared<const Impl>(std::move(impl)));
}

std::string Strategy::name() const { return impl_->name; }

std::string Strategy::text(const Network& network, int devices) const {
  const cortado::Network& cut = network.impl().network();
  if (!impl_->parsed && impl_->name_on(devices) == "auto")
    throw UserError("strategy auto: has no text before it is chosen; take that of a plan, or of a training");
  const cortado::Strategy strategy = impl_->load(cut, devices);
  resolve(strategy, cut, devices, impl_->name_on(devices));
  return strategy_text(strategy);
}

}  // namespace cortado::api
