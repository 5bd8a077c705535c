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
  if (times_faster_by_schedule > 1)
    line += fmt::format("; {:.2f}x faster by its schedule", times_faster_by_schedule);
  return line;
}

}  // namespace cortado
