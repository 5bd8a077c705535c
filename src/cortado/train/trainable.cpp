#include "cortado/train/trainable.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

void require_trainable(const Network& network, const std::string& file) {
  const auto refuse = [&](const char* why) {
    throw UserError(fmt::format("{}: nothing can be learned: {}", file, why));
  };
  const auto& parameters = network.parameters();
  if (std::ranges::any_of(parameters, &Network::Parameter::wants_gradient)) return;
  const auto has_loss = [](const Network::Node& node) {
    return std::ranges::any_of(node.loss_weights, [](double weight) { return weight != 0; });
  };
  if (std::ranges::none_of(network.nodes(), has_loss))
    refuse(
        "the net has no loss in phase TRAIN; add a loss layer such as SoftmaxWithLoss (a deploy net has "
        "none)");
  const auto learnable = [](const Network::Parameter& parameter) { return parameter.spec.learnable; };
  if (std::ranges::none_of(parameters, learnable))
    refuse("no layer of the net has weights in phase TRAIN; add one that has, such as InnerProduct");
  const auto stands = [&](const Network::Parameter& parameter) {
    return !learnable(parameter) || parameter.lr_mult == 0;
  };
  if (std::ranges::all_of(parameters, stands))
    refuse("the lr_mult of all weights is 0; give those that are to change another");
  refuse(
      "no loss depends on weights with an lr_mult other than 0; connect them, or drop propagate_down: false");
}

}  // namespace cortado
