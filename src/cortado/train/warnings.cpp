#include "cortado/train/warnings.h"

#include <fmt/format.h>

namespace cortado {

std::vector<std::string> fields_without_effect(const caffe::SolverParameter& solver,
                                               const std::string& file) {
  std::vector<std::string> lines;
  if (solver.snapshot_diff())
    lines.push_back(
        fmt::format("{}: snapshot_diff has no effect: snapshots hold no gradients; remove it", file));
  if (solver.debug_info()) lines.push_back(fmt::format("{}: debug_info has no effect; remove it", file));
  return lines;
}

std::vector<std::string> undecayed_parameters(const Network& network, const UpdateOptions& options) {
  std::vector<std::string> lines;
  for (const Network::Parameter& parameter : network.parameters()) {
    const bool decays = options.weight_decay * parameter.decay_mult != 0;
    if (parameter.wants_gradient || !parameter.spec.learnable || parameter.lr_mult == 0 || !decays) continue;
    const Network::Node& layer = network.nodes()[parameter.declared_by];
    lines.push_back(
        fmt::format("{}: layer '{}': parameter '{}' has no gradient and keeps its values, which Caffe would "
                    "let weight_decay "
                    "shrink; give it lr_mult: 0 or decay_mult: 0",
                    layer.where.text(), layer.name, parameter.name));
  }
  return lines;
}

}  // namespace cortado
