#include "cortado/program/step.h"

namespace cortado {

bool overlap(const View& one, const View& other) {
  return one.buffer == other.buffer && one.bytes.begin < other.bytes.end && other.bytes.begin < one.bytes.end;
}

const StepFacts& Step::facts() const {
  return std::visit([](const auto& kind) -> const StepFacts& { return kind.facts; }, action);
}

bool Step::communicates() const {
  return std::visit(Overloaded{[](const steps::Communicates auto&) { return true; },
                               [](const steps::Local auto&) { return false; }},
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

const std::vector<int>& Step::group() const {
  static const std::vector<int> none;
  return std::visit(
      [](const auto& kind) -> const std::vector<int>& {
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
  if (const auto* compute = step.as<steps::Compute>()) return name_of(compute->pass);
  return step.facts().name;
}

}  // namespace cortado
