#include "cortado/program/step.h"

namespace cortado {

bool overlap(const View& one, const View& other) {
  return one.buffer == other.buffer && one.bytes.begin < other.bytes.end && other.bytes.begin < one.bytes.end;
}

std::vector<Buffer::Life> Buffer::lives() const {
  if (!first_step) return {};
  if (!again) return {{first_step, last_step, offset}};
  return {{first_step, released, offset}, {again, last_step, offset_again}};
}

bool Buffer::lives_at(StepIndex step) const {
  return first_step && first_step <= step && step <= last_step &&
         (!again || step <= released || again <= step);
}

const StepFacts& Step::facts() const {
  return std::visit([](const auto& kind) -> const StepFacts& { return kind.facts; }, action);
}

bool Step::communicates() const {
  return std::visit(Overloaded{[](const steps::Communicates auto&) { return true; },
                               [](const steps::Local auto&) { return false; }},
                    action);
}

bool Step::again() const {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.again; })
          return kind.again;
        else
          return false;
      },
      action);
}

WorkIndex Step::work() const {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.work; })
          return kind.work;
        else
          return WorkIndex();
      },
      action);
}

std::span<const ParameterIndex> Step::parameters() const {
  return std::visit(
      [](const auto& kind) -> std::span<const ParameterIndex> {
        if constexpr (requires { kind.parameters; })
          return kind.parameters;
        else if constexpr (requires { kind.parameter; })
          return {&kind.parameter, 1};
        else
          return {};
      },
      action);
}

const RankGroup& Step::group() const {
  static const RankGroup none;
  return std::visit(
      [](const auto& kind) -> const RankGroup& {
        if constexpr (requires { kind.group; })
          return kind.group;
        else
          return none;
      },
      action);
}

bool is_forward(Pass pass) { return pass == Pass::forward_partial || pass == Pass::forward; }

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::forward_partial:
      return "forward-partial";
    case Pass::forward:
      return "forward";
    case Pass::backward_partial:
      return "backward-partial";
    case Pass::backward_weights:
      return "backward-weights";
    case Pass::backward:
      return "backward";
  }
  return "?";
}

std::string_view name_of(const Step& step) {
  if (const auto* compute = step.as<steps::Compute>())
    return compute->again ? "recompute" : name_of(compute->pass);
  return step.facts().name;
}

}  // namespace cortado
