#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>

#include "cortado/program/program.h"

namespace cortado::testing {

// All of a program that an executor or a simulator goes by, in words.
inline std::string whole_text(const Program& program, const Network& network) {
  std::string text = program.text(network);
  for (const Buffer& buffer : program.buffers)
    text += fmt::format("{} {} {} bytes, steps {} to {}, at {}\n", buffer.name, static_cast<int>(buffer.kind),
                        buffer.size.count, buffer.first_step, buffer.last_step, buffer.offset);
  for (const Step& step : program.steps)
    text += fmt::format("waits {} before {} needed {} late {} carried {}\n", fmt::join(step.waits, ","),
                        fmt::join(step.waits_before, ","), step.needed, step.late, step.carried);
  return text + fmt::format("arena {}", program.arena.count);
}

}  // namespace cortado::testing
