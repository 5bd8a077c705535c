#include "cortado/parallel/gradient_sync.h"

#include <algorithm>

#include "cortado/base/error.h"

namespace cortado {

const GradientSyncFacts& facts_of(GradientSync sync) {
  const auto* const found = std::ranges::find(gradient_syncs, sync, &GradientSyncFacts::sync);
  ensure(found != std::end(gradient_syncs), "every way to sum gradients has its facts");
  return *found;
}

std::string_view name_of(GradientSync sync) { return facts_of(sync).name; }

std::optional<GradientSync> gradient_sync_of(std::string_view name) {
  for (const GradientSyncFacts& facts : gradient_syncs)
    if (facts.name == name) return facts.sync;
  return std::nullopt;
}

std::string gradient_sync_choices() {
  std::string text;
  for (const GradientSyncFacts& facts : gradient_syncs) {
    if (!text.empty()) text += &facts == std::end(gradient_syncs) - 1 ? " or " : ", ";
    text += facts.name;
  }
  return text;
}

}  // namespace cortado
