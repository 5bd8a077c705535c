#include "cortado/program/step.h"

#include "cortado/base/overloaded.h"

namespace cortado {

bool overlap(const View& one, const View& other) {
  return one.buffer == other.buffer && one.bytes.begin < other.bytes.end && other.bytes.begin < one.bytes.end;
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
  using Name = std::string_view;
  return std::visit(
      Overloaded{[](const steps::Load&) -> Name { return "load"; },
                 [](const steps::Compute& compute) { return name_of(compute.pass); },
                 [](const steps::Barrier&) -> Name { return "barrier"; },
                 [](const steps::Seed&) -> Name { return "seed"; },
                 [](const steps::Accumulate&) -> Name { return "accumulate"; },
                 [](const steps::AccumulateParameter&) -> Name { return "accumulate-parameter"; },
                 [](const steps::Exchange&) -> Name { return "exchange"; },
                 [](const steps::SumStatistics&) -> Name { return "sum-statistics"; },
                 [](const steps::SumGradient&) -> Name { return "sum-gradient"; },
                 [](const steps::ScatterGradient&) -> Name { return "scatter-gradient"; },
                 [](const steps::Update&) -> Name { return "update"; },
                 [](const steps::GatherParameter&) -> Name { return "gather-parameter"; }},
      step.action);
}

}  // namespace cortado
