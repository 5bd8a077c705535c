#include <algorithm>

#include "cortado/program/passes.h"

namespace cortado {

// Goes from the last step to the first, since who waits for a step comes after it (for a carried step: in the
// next iteration). A communication step that waits for another needs it when it is needed itself. What nobody
// waits for is needed when the iteration ends.
void find_needs(Program& program) {
  const int end = static_cast<int>(program.steps.size());
  for (Step& step : program.steps) step.needed = step.carried ? 2 * end : end;
  const auto need = [&](StepIndex step, int when) {
    int& needed = program.steps[step].needed;
    needed = std::min(needed, when);
  };
  for (const bool before : {true, false}) {
    for (StepIndex s(end - 1); s; --s) {
      const Step& step = program.steps[s];
      const int when = step.lane == Lane::compute ? s.value() : step.needed;
      if (before)
        for (StepIndex other : step.waits_before) need(other, end + when);
      else
        for (StepIndex other : step.waits) need(other, when);
    }
  }
}

}  // namespace cortado
