#include <fmt/format.h>

#include "cortado/auto/choose_strategy.h"

namespace cortado {

std::string AutoChoice::text() const {
  std::string line = built_in.empty()
                         ? fmt::format("{} of {} layers not cut by sample", layers_not_by_sample, layers)
                         : "as " + built_in;
  if (tried > 0) line += fmt::format(", fastest of {} tried", tried);
  line += fmt::format("; {:.2f}x faster than data, {:.2f}x than owt", times_faster_than_data,
                      times_faster_than_owt);
  if (times_faster_side_by_side > 1)
    line += fmt::format("; {:.2f}x faster with branches side by side", times_faster_side_by_side);
  if (times_faster_by_schedule > 1)
    line += fmt::format("; {:.2f}x faster by its schedule", times_faster_by_schedule);
  return line;
}

std::vector<std::string> AutoChoice::lines() const {
  if (!obstacle.empty()) return {fmt::format("strategy auto: as data; no plan: {}", obstacle)};
  std::vector<std::string> lines;
  if (!planned) return lines;
  if (!misfit.empty()) lines.push_back(fmt::format("strategy auto: {}; planned without that limit", misfit));
  lines.push_back(fmt::format("strategy auto: {}; planned in {:.1f} s ({})", text(), planning.count,
                              cached ? "cached" : fmt::format("{} tasks measured", measurements)));
  return lines;
}

}  // namespace cortado
