#include "cortado/program/reproducible.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "cortado/base/error.h"
#include "cortado/base/sum_tree.h"
#include "cortado/layers/sum_blocks.h"

namespace cortado {
namespace {

class Check {
 public:
  Check(const Network& network, const NodeStrategies& strategies)
      : network_(network), strategies_(strategies) {}

  void run() {
    for (NodeIndex n : indices(network_.nodes())) {
      if (network_.nodes()[n].layer->is_source()) continue;
      look_at(n);
      check_cuts();
      check_parameters();
      check_chain(n);
      check_repeated_inputs(n);
    }
  }

  // Whether the layer's cut by samples or by channels is held.
  bool holds(NodeIndex n) {
    look_at(n);
    return (degrees().n == 1 || refusal_of_samples().empty()) &&
           (degrees().c == 1 || refusal_of_channels().empty());
  }

  // The layer after it that must be cut as it is; nowhere: there is none. Layers that one kernel may compute
  // together have that kernel, not those of each, wherever nothing moves between them: other algorithms,
  // which round otherwise. Products in blocks have the same kernel with a ReLU after them and without.
  NodeIndex computed_with(NodeIndex n) {
    look_at(n);
    const bool in_blocks = !in_bf16() && channel_blocks(*node_->layer, inputs_, outputs_) > 1;
    if (node_->outputs.size() != 1 || in_blocks) return {};
    const auto& consumers = network_.tensors()[node_->outputs[0]].consumers;
    if (consumers.size() != 1) return {};
    return node_->layer->may_fuse_with(*network_.nodes()[consumers[0]].layer) ? consumers[0] : NodeIndex();
  }

 private:
  void look_at(NodeIndex n) {
    node_ = &network_.nodes()[n];
    strategy_ = &strategies_[n];
    inputs_ = network_.shapes_of(node_->inputs);
    outputs_ = network_.shapes_of(node_->outputs);
  }

  const Degrees& degrees() const { return strategy_->config.degrees; }

  bool in_bf16() const { return strategy_->precision.value_or(network_.precision()) == Precision::bf16; }

  [[noreturn]] void refuse(const std::string& reason) const {
    throw UserError(
        fmt::format("reproducible: layer '{}' ({}): {}", node_->name, node_->layer->type(), reason));
  }

  void check_cuts() const {
    if (degrees().r > 1)
      refuse(fmt::format("r = {}: ranks would sum over input channels in another order than one rank; use 1",
                         degrees().r));
    if (degrees().d * degrees().h * degrees().w > 1)
      refuse(fmt::format("{}: sums over space would go in another order than on one rank; cut samples",
                         degrees().text()));
    if (strategy_->local_batch_norm)
      refuse("batch_norm = local: statistics are those of each rank's own samples; use global ones");
    if (!std::ranges::is_sorted(strategy_->config.devices))
      refuse("the ranks of its devices do not ascend, as the parts of its samples do");
    if (degrees().n > 1) refuse_if(refusal_of_samples());
    if (degrees().c > 1) refuse_if(refusal_of_channels());
  }

  void refuse_if(const std::string& reason) const {
    if (!reason.empty()) refuse(reason);
  }

  // Why these samples are not held; empty: they are.
  std::string refusal_of_samples() const {
    const int blocks = sample_blocks(*node_->layer, inputs_, outputs_);
    const Shape domain = node_->layer->domain(inputs_, outputs_);
    for (int i = 0; i < degrees().product(); ++i)
      if (!is_node(domain_block(domain, strategy_->config, i)[0], domain[0], blocks))
        return fmt::format(
            "n = {}: its {} samples are {} of which each rank needs 1, 2, 4 or 8 neighbours; use a "
            "power of two up to {}{}",
            degrees().n, domain[0], blocks > 1 ? fmt::format("{} blocks,", blocks) : "one block,", blocks,
            blocks < 8 ? ", or a batch that 8 divides" : "");
    for (int i = 0; i < static_cast<int>(inputs_.size()); ++i)
      if (node_->propagate_down[static_cast<size_t>(i)] &&
          shared_by_samples(*node_->layer, inputs_, outputs_, i))
        return fmt::format("n = {}: the gradient of its input {} is a sum over samples; use 1", degrees().n,
                           i);
    return "";
  }

  // Why these channels are not held; empty: they are.
  std::string refusal_of_channels() const {
    const Shape domain = node_->layer->domain(inputs_, outputs_);
    const int blocks = channel_blocks(*node_->layer, inputs_, outputs_);
    if (in_bf16() || (blocks == 1 && !channels_stand_alone(*node_->layer)))
      return fmt::format("c = {}: {}; cut samples", degrees().c,
                         node_->layer->products() == Products::none
                             ? "a part of its channels may be rounded otherwise than the whole"
                             : "the gradient of its input is a sum over channels, which one rank does not "
                               "sum in blocks");
    if (blocks == 1) return "";
    for (int i = 0; i < degrees().product(); ++i)
      if (!is_node(domain_block(domain, strategy_->config, i)[1], domain[1], blocks))
        return fmt::format("c = {}: its {} outputs are {} blocks; use a power of two up to {}", degrees().c,
                           domain[1], blocks, blocks);
    return "";
  }

  void check_parameters() const {
    if (!network_.learns()) return;
    for (ParameterIndex p : node_->parameters) {
      const Network::Parameter& parameter = network_.parameters()[p];
      if (!parameter.wants_gradient || degrees().product() == 1) continue;
      if (parameter.users.size() > 1)
        refuse(
            fmt::format("shares parameter {} with other layers, whose gradients ranks would add in another "
                        "order; leave these layers on one rank",
                        parameter.name));
      if (strategy_->sync != GradientSync::allreduce)
        refuse(fmt::format("sync = {}: sums in another order than one rank; use allreduce",
                           name_of(strategy_->sync)));
    }
  }

  void check_chain(NodeIndex n) {
    const NodeIndex next = computed_with(n);
    if (next && strategies_[next].config != strategies_[n].config)
      refuse(fmt::format("is cut otherwise than layer '{}', which is computed with it; cut both the same way",
                         network_.nodes()[next].name));
  }

  // Contributions to a tensor's gradient are added in the order of its uses. Copies of what a layer reads
  // several times come back in another one.
  void check_repeated_inputs(NodeIndex n) const {
    for (TensorIndex input : node_->inputs) {
      const auto& tensor = network_.tensors()[input];
      const bool repeated = std::ranges::count(node_->inputs, input) > 1 && tensor.consumers.size() > 2;
      if (!repeated || !tensor.needs_gradient || strategies_[tensor.producer].config == strategies_[n].config)
        continue;
      refuse(
          fmt::format("reads '{}' several times, as other layers do, and is cut otherwise than layer '{}'; "
                      "cut both the same way",
                      tensor.name, network_.nodes()[tensor.producer].name));
    }
  }

  const Network& network_;
  const NodeStrategies& strategies_;
  const Network::Node* node_ = nullptr;
  const LayerStrategy* strategy_ = nullptr;
  std::vector<Shape> inputs_, outputs_;
};

bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

// Shares are nodes of the tree, whatever the devices are worth.
void share_by_tree(ParallelConfig& config) {
  const int parts = config.degrees.product();
  config.weights.clear();
  if ((config.degrees.n != parts && config.degrees.c != parts) || is_power_of_two(parts)) return;
  const std::vector<int64_t> shares = tree_shares(parts);
  config.weights.assign(shares.begin(), shares.end());
}

}  // namespace

NodeStrategies with_held_channels(const Network& network, NodeStrategies strategies) {
  IndexedVector<NodeIndex, ParallelConfig> asked;
  for (const LayerStrategy& strategy : strategies) asked.push_back(strategy.config);
  for (NodeIndex n : indices(network.nodes())) {
    const Degrees& whole = asked[n].degrees;
    if (whole.c == 1 || whole.c != whole.product()) continue;
    ParallelConfig& config = strategies[n].config;
    const auto held = [&](const Degrees& degrees) {
      config = asked[n];
      config.degrees = degrees;
      config.devices.resize(static_cast<size_t>(degrees.product()));
      share_by_tree(config);
      return Check(network, strategies).holds(n);
    };
    bool found = false;
    for (int parts = whole.c; parts > 1 && !found; --parts) found = held({.c = parts});
    for (int parts = whole.c; parts > 1 && !found; --parts) found = held({.n = parts});
    if (!found) held({});
  }
  for (NodeIndex n : indices(network.nodes()))
    if (const NodeIndex next = Check(network, strategies).computed_with(n); next && asked[next] == asked[n])
      strategies[next].config = strategies[n].config;
  return strategies;
}

NodeStrategies reproducible_strategies(const Network& network, NodeStrategies strategies) {
  for (LayerStrategy& strategy : strategies) share_by_tree(strategy.config);
  Check(network, strategies).run();
  return strategies;
}

}  // namespace cortado
