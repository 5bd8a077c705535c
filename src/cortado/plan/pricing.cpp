#include "cortado/plan/pricing.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "cortado/base/error.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/plan/memory.h"

namespace cortado::plan {
namespace {

int64_t bytes_of(const Box& box) { return box.shape().size() * static_cast<int64_t>(sizeof(float)); }

// The largest box of a layout, in bytes.
Bytes largest(const Layout& layout) {
  Bytes most;
  for (const auto& box : layout) {
    if (box) most.count = std::max(most.count, bytes_of(*box));
  }
  return most;
}

// Ranks with the same value of `key`, in order.
template <typename Key>
std::vector<std::vector<int>> groups_by(const std::vector<int>& ranks, Key&& key) {
  std::map<decltype(key(0)), std::vector<int>> groups;
  for (size_t i = 0; i < ranks.size(); ++i) groups[key(static_cast<int>(i))].push_back(ranks[i]);
  std::vector<std::vector<int>> list;
  for (auto& [value, members] : groups) list.push_back(std::move(members));
  return list;
}

// Ranks that hold the same slice: the segmented allreduce of channel and filter parallelism, section 3.2.
std::vector<std::vector<int>> replicas(const Layout& slices) {
  std::vector<std::pair<Box, std::vector<int>>> groups;
  for (size_t rank = 0; rank < slices.size(); ++rank) {
    if (!slices[rank]) continue;
    auto same = std::ranges::find(groups, *slices[rank], &std::pair<Box, std::vector<int>>::first);
    if (same == groups.end()) same = groups.insert(groups.end(), {*slices[rank], {}});
    same->second.push_back(static_cast<int>(rank));
  }
  std::vector<std::vector<int>> list;
  for (auto& [box, members] : groups) list.push_back(std::move(members));
  return list;
}

class Pricer {
 public:
  Pricer(const Network& network, const Group& group, const ParallelConfig& config,
         const PricingOptions& options, CostModel& costs)
      : network_(network), group_(group), config_(config), options_(options), costs_(costs) {}

  Priced run() {
    priced_.strategy.config = config_;
    const bool summed = config_.degrees.r > 1;
    for (size_t i = 0; i < group_.nodes.size(); ++i) add_layer(i);
    price_tasks(summed);
    if (summed) price_partial_sums();
    priced_.memory = held_bytes(network_, group_, priced_);
    return std::move(priced_);
  }

 private:
  const Network::Node& node(size_t i) const { return network_.nodes()[group_.nodes[i]]; }

  void add_layer(size_t i) {
    const auto& node = this->node(i);
    const auto inputs = shapes(network_, node.inputs), outputs = shapes(network_, node.outputs);
    const ParallelConfig config = i == 0 ? config_ : following(config_);
    cuts_.push_back(cut_layer(*node.layer, inputs, outputs, config, options_.devices));
    const LayerCut& cut = cuts_.back();
    if (i == 0) {
      for (const Layout& reads : cut.reads) priced_.reads.emplace_back(reads);
    }
    if (i + 1 == group_.nodes.size()) {
      for (const Layout& owns : cut.owns) priced_.owns.emplace_back(owns);
    }
    for (size_t p = 0; p < node.parameters.size(); ++p)
      price_parameter(network_.parameters()[node.parameters[p]], cut.slices[p]);
    price_statistics(node, config, cut);
  }

  // Its time; adds what all ranks send to `sent`.
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes, int64_t& sent) {
    for (const auto& group : groups)
      sent += (kind == Collective::allreduce ? 2 : 1) * (std::ssize(group) - 1) * bytes.count;
    return costs_.collective(kind, groups, bytes);
  }

  void price_parameter(const Network::Parameter& parameter, const Layout& slices) {
    const Bytes slice = largest(slices);
    priced_.parameters += slice;
    if (!parameter.wants_gradient) return;
    priced_.parameters += {slice.count * (1 + options_.history)};
    const auto groups = replicas(slices);
    priced_.sync += collective(Collective::allreduce, groups, slice, priced_.sync_bytes);
    priced_.update += costs_.update(slice, config_.devices[0]);
  }

  // Sums that a cut layer makes over the devices: of losses, which all ranks come to know, and of statistics,
  // in double precision, forward and backward.
  void price_statistics(const Network::Node& node, const ParallelConfig& config, const LayerCut& cut) {
    if (node.layer->sums(0)) {
      add_sums(Collective::reduce_scatter, {&config.devices, 1}, {sizeof(float)});
      std::vector<int> all(static_cast<size_t>(options_.devices));
      std::iota(all.begin(), all.end(), 0);
      if (node.loss_weights[0] != 0) add_sums(Collective::allgather, {&all, 1}, {sizeof(float)});
    } else if (node.layer->type() == "BatchNorm" && network_.phase() == Phase::train) {
      const auto groups =
          groups_by(config.devices, [&](int index) { return coordinates_of(config.degrees, index).c; });
      const int64_t channels = (*cut.domain[static_cast<size_t>(config.devices[0])])[1].size();
      const Bytes sums{2 * channels * static_cast<int64_t>(sizeof(double))};
      for (int pass = 0; pass < (node.has_backward ? 2 : 1); ++pass)
        add_sums(Collective::allreduce, groups, sums);
    }
  }

  // The rank with the largest share of layer i.
  int slowest(size_t i) const {
    int slowest = -1;
    int64_t most = -1;
    for (size_t rank = 0; rank < cuts_[i].domain.size(); ++rank) {
      if (!cuts_[i].domain[rank] || cuts_[i].domain[rank]->shape().size() <= most) continue;
      most = cuts_[i].domain[rank]->shape().size();
      slowest = static_cast<int>(rank);
    }
    ensure(slowest >= 0, "a layer has a device");
    return slowest;
  }

  // Layers i to the end as one kernel runs them.
  Task chain(size_t i, size_t end, int rank, LayerPtr first) const {
    const auto& node = this->node(i);
    Task whole = whole_task(std::move(first), network_.phase(), shapes(network_, node.inputs),
                            static_cast<int>(node.outputs.size()));
    whole.input_gradients = node.propagate_down;
    std::optional<Range> summed;
    const auto& read = cuts_[i].reads[0][static_cast<size_t>(rank)];
    if (i == 0 && config_.degrees.r > 1) summed = (*read)[1];
    Task task = cut_task(whole, *cuts_[i].domain[static_cast<size_t>(rank)], summed);
    task.parameter_gradients.clear();
    task.cut = config_.devices.size() > 1;
    task.layers.clear();
    for (size_t k = i; k < end; ++k) {
      task.layers.push_back(k == i ? whole.layers[0] : this->node(k).layer);
      const auto layer_parameters = task.layers.back()->parameters(whole.inputs).size();
      for (size_t p = 0; p < layer_parameters; ++p)
        task.parameter_gradients.push_back(network_.parameters()[this->node(k).parameters[p]].wants_gradient);
    }
    return task;
  }

  void price_tasks(bool summed) {
    const size_t layers = group_.nodes.size();
    LayerPtr first = node(0).layer;
    if (summed && first->without_bias()) first = first->without_bias();
    const int rank = slowest(0);
    priced_.compute = costs_.task(chain(0, summed ? 1 : layers, rank, first), rank);
    if (!summed || layers == 1) return;
    const int owner = slowest(1);
    const TaskTime behind = costs_.task(chain(1, layers, owner, node(1).layer), owner);
    priced_.compute.forward += behind.forward;
    priced_.compute.backward += behind.backward;
    priced_.compute.backward_weights += behind.backward_weights;
  }

  // A reduce-scatter of the addends over the devices that differ in r alone, and an allgather of the
  // gradient.
  void price_partial_sums() {
    const Degrees degrees = config_.degrees;
    const auto groups = groups_by(config_.devices, [&](int index) { return index / degrees.r; });
    const Bytes addends = largest(cuts_[0].computes[0]);
    add_sums(Collective::reduce_scatter, groups, addends);
    if (node(0).has_backward) add_sums(Collective::allgather, groups, addends);
  }

  void add_sums(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes) {
    priced_.sums += collective(kind, groups, bytes, priced_.sums_bytes);
  }

  const Network& network_;
  const Group& group_;
  const ParallelConfig& config_;
  const PricingOptions& options_;
  CostModel& costs_;
  std::vector<LayerCut> cuts_;
  Priced priced_;
};

}  // namespace

Priced price(const Network& network, const Group& group, const ParallelConfig& config,
             const PricingOptions& options, CostModel& costs) {
  return Pricer(network, group, config, options, costs).run();
}

}  // namespace cortado::plan
