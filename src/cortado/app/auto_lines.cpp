#include "cortado/app/auto_lines.h"

#include <fmt/format.h>

#include "cortado/app/log_lines.h"

namespace cortado {
namespace {

// "as owt, fastest of 2 tried; 1.02x faster than data, 1.00x than owt"
std::string told(const AutoChoice& choice) {
  std::string text = choice.built_in.empty() ? fmt::format("{} of {} layers not cut by sample",
                                                           choice.layers_not_by_sample, choice.layers)
                                             : "as " + choice.built_in;
  if (choice.tried > 0) text += fmt::format(", fastest of {} tried", choice.tried);
  text += fmt::format("; {:.2f}x faster than data, {:.2f}x than owt", choice.times_faster_than_data,
                      choice.times_faster_than_owt);
  if (choice.times_faster_by_schedule > 1)
    text += fmt::format("; {:.2f}x faster by its schedule", choice.times_faster_by_schedule);
  return text;
}

}  // namespace

void print_choice(const AutoChoice& choice) {
  if (!choice.obstacle.empty())
    log_line(our_line, fmt::format("strategy auto: as data; no plan: {}", choice.obstacle));
  if (!choice.planned) return;
  if (!choice.misfit.empty())
    log_line(our_line, fmt::format("strategy auto: {}; planned without that limit", choice.misfit));
  log_line(our_line,
           fmt::format("strategy auto: {}; planned in {:.1f} s ({})", told(choice), choice.planning.count,
                       choice.cached ? "cached" : fmt::format("{} tasks measured", choice.measurements)));
}

}  // namespace cortado
