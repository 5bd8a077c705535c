#include <algorithm>
#include <map>
#include <utility>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

// The step of the forward pass that reads a parameter first.
int first_use(const Program& program, int parameter) {
  for (int s = 0; s < program.forward_steps; ++s) {
    const Step& step = program.steps[static_cast<size_t>(s)];
    if (step.lane != Lane::compute || step.work < 0) continue;
    const auto& parameters = program.works[static_cast<size_t>(step.work)].parameters;
    if (std::ranges::find(parameters, parameter) != parameters.end()) return s;
  }
  return -1;
}

}  // namespace

void delay_updates(Program& program) {
  std::vector<bool> summed(program.placement.slices.size(), false);
  for (Step& step : program.steps) {
    step.carried = step.kind == Step::Kind::sum_gradient || step.kind == Step::Kind::gather_parameter;
    if (step.kind != Step::Kind::sum_gradient) continue;
    for (int parameter : step.parameters) summed[static_cast<size_t>(parameter)] = true;
  }
  std::multimap<int, Step> late;  // by the step that they go before
  std::vector<Step> others;
  for (Step& step : program.steps) {
    step.late = step.kind == Step::Kind::update && summed[static_cast<size_t>(step.parameters[0])];
    if (step.late) {
      late.emplace(first_use(program, step.parameters[0]), step);
    } else {
      others.push_back(step);
    }
  }
  program.steps.clear();
  for (size_t s = 0; s < others.size(); ++s) {
    const auto [begin, end] = late.equal_range(static_cast<int>(s));
    for (auto update = begin; update != end; ++update) program.steps.push_back(std::move(update->second));
    program.steps.push_back(std::move(others[s]));
  }
  program.forward_steps += static_cast<int>(late.size());
}

}  // namespace cortado
