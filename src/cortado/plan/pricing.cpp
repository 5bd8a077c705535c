#include "cortado/plan/pricing.h"

#include <algorithm>
#include <numeric>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"

namespace cortado::plan {
namespace {

using RankGroups = std::vector<std::vector<int>>;

// Splits a list of ranks into `parts` groups: the rank at position i goes to group part(i).
template <typename Part>
RankGroups groups_by(const std::vector<int>& ranks, int parts, Part&& part) {
  RankGroups groups(static_cast<size_t>(parts));
  for (size_t i = 0; i < ranks.size(); ++i)
    groups[static_cast<size_t>(part(static_cast<int>(i)))].push_back(ranks[i]);
  return groups;
}

}  // namespace

// Prices one configuration of a group.
class GroupPricer::Run {
 public:
  Run(GroupPricer& group, const ParallelConfig& config)
      : group_(group),
        config_(config),
        after_(group.members_.size() > 1 ? following(config) : ParallelConfig{}),
        costs_(group.costs_) {
    priced_.strategy.config = config_;
    for (size_t i = 0; i < group_.members_.size(); ++i) add_layer(i);
    price_tasks();
    if (config_.degrees.r > 1) price_partial_sums();
  }

  // Both have what the configuration costs whatever way gradients take.
  Priced replicated() const {
    Priced priced = priced_;
    priced.strategy.sync = GradientSync::replicate;
    price_whole_gradients(priced);
    take(gathered_by_replicas(), priced);
    return finished(std::move(priced));
  }

  Priced summed() && {
    // What is sent to servers, who update what owners do.
    priced_.sync_by_servers = served_;
    priced_.update_by_servers = by_owners_.update;
    priced_.more_bytes_by_servers = {served_bytes_.count - by_allreduce_.sent.count};
    if (cheaper_by_owners()) {
      priced_.strategy.sync = GradientSync::owner;
      priced_.more_by_allreduce = {(by_allreduce_.seconds() - by_owners_.seconds()).count};
      priced_.more_parameters_by_allreduce = {by_allreduce_.parameters.count - by_owners_.parameters.count};
      take(by_owners_, priced_);
    } else {
      take(by_allreduce_, priced_);
    }
    priced_.more_parameters_by_servers = {by_owners_.parameters.count - priced_.parameters.count};
    return finished(std::move(priced_));
  }

 private:
  const ParallelConfig& config_of(size_t i) const { return i == 0 ? config_ : after_; }

  void add_layer(size_t i) {
    Member& member = group_.members_[i];
    const ParallelConfig& config = config_of(i);
    if (i == 0) {
      for (int input = 0; input < static_cast<int>(member.inputs.size()); ++input)
        priced_.reads.push_back(member.grid.reads(input, config));
      priced_.read_types = group_.types_of(member.node.inputs);
    }
    if (i + 1 == group_.members_.size()) {
      for (int k = 0; k < static_cast<int>(member.outputs.size()); ++k)
        priced_.owns.push_back(member.grid.owns(k, config));
      priced_.own_types = group_.types_of(member.node.outputs);
    }
    for (size_t p = 0; p < member.parameters.size(); ++p)
      price_parameter(member, p, member.grid.slices(static_cast<int>(p), config));
    price_statistics(i);
  }

  // Returns the seconds of one collective in all groups at once. Adds to `sent` the bytes that all ranks
  // send.
  Seconds collective(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes,
                     Bytes& sent) const {
    int64_t members = 0;
    for (const auto& group : groups) members += std::ssize(group) - 1;
    if (members == 0) return {};
    sent += {rounds_of(kind) * members * bytes.count};
    return costs_.collective(kind, groups, bytes);
  }

  // Totals of all parameters: what one way to get whole gradients takes with the updates, and what
  // parameters, gradients and the solver's history take of the device that holds most.
  struct Gradients {
    Seconds sync, update;
    Bytes sent, parameters;
    Seconds seconds() const { return sync + update; }
  };

  static void take(const Gradients& gradients, Priced& priced) {
    priced.sync = gradients.sync;
    priced.update = gradients.update;
    priced.sync_bytes = gradients.sent;
    priced.parameters = gradients.parameters;
  }

  Priced finished(Priced priced) const {
    priced.memory = held_bytes(group_.network_, group_.group_, priced);
    return priced;
  }

  // Owners send as much in all, and each updates a share. But they send what they updated after the backward
  // pass, where nothing hides it. So owners are taken where they save more than that takes.
  bool cheaper_by_owners() const { return by_allreduce_.update - by_owners_.update > gathers_; }

  void price_parameter(Member& member, size_t p, const GridLayout& slices) {
    const Bytes slice = bytes_of(slices.most_elements(), ElementType::f32);
    for (Gradients* way : {&by_allreduce_, &by_owners_}) way->parameters += slice;
    if (!member.parameters[p]->wants_gradient) return;
    const int history = group_.options_.history;
    const GradientSum& sum = sum_of(member.sums[p], slices, slice);
    const Bytes share{(slice.count + sum.replicas - 1) / sum.replicas};
    by_allreduce_.parameters += {slice.count * (1 + history)};
    by_owners_.parameters += {slice.count + share.count * history};
    by_allreduce_.update += costs_.update(slice, slowest_device());  // each device updates all that it holds
    by_owners_.update += costs_.update(share, slowest_device());
    by_allreduce_.sync += sum.allreduce;
    by_owners_.sync += sum.scatter + sum.gather;
    for (Gradients* way : {&by_allreduce_, &by_owners_}) way->sent += sum.bytes;
    gathers_ += sum.gather;
    served_ += sum.served;
    served_bytes_ += sum.served_bytes;
  }

  // Instead of a sum each replica gathers what all of them read, unless that is samples, of which it reads
  // more, and the gradients of what they computed. It updates what it holds, as after an allreduce. Layers
  // after such a one have no parameters.
  Gradients gathered_by_replicas() const {
    Gradients gradients{
        .sync = {}, .update = by_allreduce_.update, .sent = {}, .parameters = by_allreduce_.parameters};
    Member& member = group_.members_[0];
    const RankGroups replicas = member.grid.slices(0, config_).replicas();
    const auto& tensors = group_.network_.tensors();
    const auto &read = tensors[member.node.inputs[0]], &written = tensors[member.node.outputs[0]];
    const Bytes inputs = bytes_of(member.grid.replicas_reads(config_).most_elements(), read.type);
    const Bytes whole = bytes_of(member.grid.replicas_domain(config_).most_elements(), written.type);
    const auto& producer = group_.network_.nodes()[read.producer];
    for (const Bytes& gathered : {producer.layer->is_source() ? Bytes{} : inputs, whole})
      gradients.sync += collective(Collective::allgather, replicas, gathered, gradients.sent);
    gradients.parameters += {inputs.count + whole.count};
    return gradients;
  }

  int slowest_device() const {
    const std::vector<double>& weights = group_.options_.weights;
    if (weights.empty()) return config_.devices[0];
    return *std::ranges::min_element(config_.devices, {},
                                     [&](int device) { return weights[static_cast<size_t>(device)]; });
  }

  // Returns the segmented allreduce of channel and filter parallelism (Dryden et al. 2019, section 3.2). Many
  // configurations have the same.
  const GradientSum& sum_of(std::vector<GradientSum>& known, const GridLayout& slices, Bytes slice) const {
    const auto same = std::ranges::find(known, slices, &GradientSum::slices);
    if (same != known.end()) return *same;
    GradientSum& sum = known.emplace_back(slices);
    const RankGroups groups = slices.replicas();
    Bytes both;
    sum.allreduce = collective(Collective::allreduce, groups, slice, sum.bytes);
    sum.scatter = collective(Collective::reduce_scatter, groups, slice, both);
    sum.gather = collective(Collective::allgather, groups, slice, both);
    sum.replicas = static_cast<int>(groups[0].size());
    if (sum.replicas > 1) {
      sum.served = costs_.collective(Collective::push, groups, slice) +
                   costs_.collective(Collective::pull, groups, slice);
      for (const auto& group : groups) sum.served_bytes += {2 * std::ssize(group) * slice.count};
    }
    return sum;
  }

  // Sums that a cut layer makes over the devices: of losses, which all ranks come to know, and of statistics,
  // in double precision, forward and backward.
  void price_statistics(size_t i) {
    const Network::Node& node = group_.members_[i].node;
    if (node.layer->sums(0)) {
      add_sums(Collective::reduce_scatter, {&config_.devices, 1}, bytes_of(1, ElementType::f32));
      std::vector<int> all(static_cast<size_t>(group_.options_.devices));
      std::iota(all.begin(), all.end(), 0);
      if (node.loss_weights[0] != 0)
        add_sums(Collective::allgather, {&all, 1}, bytes_of(1, ElementType::f32));
    } else if (node.layer->sums_statistics(node.phase)) {
      const Degrees& degrees = config_of(i).degrees;
      const auto groups =
          groups_by(config_.devices, degrees.c, [&](int index) { return index / degrees.r % degrees.c; });
      const int64_t channels =
          group_.members_[i].grid.domain(config_of(i)).range(config_.devices[0], 1).size();
      const Bytes sums{2 * channels * static_cast<int64_t>(sizeof(double))};
      add_sums(Collective::allreduce, groups, sums, node.has_backward ? 2 : 1);
    }
  }

  // A chain's prototype on the slowest rank; of equal ones, that with the largest share of its first layer,
  // layer i.
  TaskTime slowest(Task& task, size_t i) const {
    return slowest(task, i, group_.members_[i].grid.domain(config_of(i)));
  }

  TaskTime slowest(Task& task, size_t i, const GridLayout& domain) const {
    const int most = domain.first_with_most();
    ensure(most >= 0, "a layer has a device");
    if (group_.options_.weights.empty()) return time_on(most, task, i, domain);
    TaskTime slowest;
    bool bound = false;
    for (int rank : config_.devices) {
      if (!domain.holds(rank)) continue;
      const TaskTime time = time_on(rank, task, i, domain);
      bound |= time.bound;
      if (time.total() > slowest.total()) slowest = time;
    }
    slowest.bound = bound;
    return slowest;
  }

  // Computing of the first device, where the slowest one takes `most`.
  Seconds of_first(Task& task, size_t i, const TaskTime& most) {
    const GridLayout domain = group_.members_[i].grid.domain(config_of(i));
    const int first = config_.devices[0];
    if (!domain.holds(first)) return {};
    const bool equal = group_.options_.weights.empty() && domain.elements(first) == domain.most_elements();
    return equal ? most.total() : time_on(first, task, i, domain).total();
  }

  TaskTime time_on(int rank, Task& task, size_t i, const GridLayout& domain) const {
    std::optional<Range> summed;
    if (i == 0 && config_.degrees.r > 1) summed = priced_.reads[0].range(rank, 1);
    cut_again(task, domain.box(rank), summed);
    task.cut = config_.devices.size() > 1;
    return costs_.task(task, rank);
  }

  void price_tasks() {
    if (config_.degrees.r == 1) {
      priced_.compute = slowest(group_.task_, 0);
      priced_.first = of_first(group_.task_, 0, priced_.compute);
      return;
    }
    priced_.compute = slowest(*group_.summed_, 0);
    priced_.first = of_first(*group_.summed_, 0, priced_.compute);
    if (!group_.after_) return;
    const TaskTime rest = slowest(*group_.after_, 1);
    priced_.first += of_first(*group_.after_, 1, rest);
    priced_.compute.forward += rest.forward;
    priced_.compute.backward += rest.backward;
    priced_.compute.backward_weights += rest.backward_weights;
    priced_.compute.bound |= rest.bound;
  }

  // The task is one that other candidates have, too, so that nothing more is measured. The layers after the
  // first are priced as parts of its kernel, though they run by themselves. The first device takes at least
  // what its part of the samples does.
  void price_whole_gradients(Priced& priced) const {
    const TaskTime whole = slowest(group_.task_, 0, group_.members_[0].grid.replicas_domain(config_));
    priced.compute.backward_weights = whole.backward_weights;
    priced.compute.bound |= whole.bound;
  }

  // A reduce-scatter of the addends over the devices that differ in r alone, and an allgather of the
  // gradient.
  void price_partial_sums() {
    const int r = config_.degrees.r;
    const auto groups =
        groups_by(config_.devices, config_.degrees.product() / r, [&](int index) { return index / r; });
    Member& member = group_.members_[0];
    const int64_t addends = member.grid.computes(0, config_).most_elements();
    const ElementType type = group_.types_of(member.node.outputs)[0];
    add_sums(Collective::reduce_scatter, groups, bytes_of(addends, ElementType::f32));
    if (member.node.has_backward) add_sums(Collective::allgather, groups, bytes_of(addends, type));
  }

  void add_sums(Collective kind, std::span<const std::vector<int>> groups, Bytes bytes, int times = 1) {
    Bytes sent;
    priced_.sums += {times * collective(kind, groups, bytes, sent).count};
    priced_.sums_bytes += {times * sent.count};
  }

  GroupPricer& group_;
  const ParallelConfig& config_;
  const ParallelConfig after_;  // of the layers after the first
  CostModel& costs_;
  Gradients by_allreduce_, by_owners_;
  Seconds gathers_;  // of owners
  Seconds served_;   // what servers take
  Bytes served_bytes_;
  Priced priced_;
};

GroupPricer::Member::Member(const Network& network, NodeIndex index, int devices)
    : node(network.nodes()[index]),
      inputs(network.shapes_of(node.inputs)),
      outputs(network.shapes_of(node.outputs)),
      grid(*node.layer, inputs, outputs, devices) {
  for (ParameterIndex p : node.parameters) parameters.push_back(&network.parameters()[p]);
  sums.resize(parameters.size());
}

GroupPricer::GroupPricer(const Network& network, const Group& group, const PricingOptions& options,
                         CostModel& costs)
    : network_(network), group_(group), options_(options), costs_(costs) {
  for (NodeIndex node : group.nodes) members_.emplace_back(network, node, options.devices);
  const LayerPtr first = members_[0].node.layer;
  task_ = chain(0, members_.size(), first);
  if (!first->cuts(members_[0].inputs).r) return;
  const LayerPtr bare = first->without_bias();
  summed_ = chain(0, 1, bare ? bare : first);
  summed_->output_types = {ElementType::f32};  // addends
  if (members_.size() > 1) after_ = chain(1, members_.size(), members_[1].node.layer);
}

Task GroupPricer::chain(size_t begin, size_t end, LayerPtr first) const {
  const Member& member = members_[begin];
  Task task =
      whole_task(std::move(first), member.node.phase, member.inputs, static_cast<int>(member.outputs.size()));
  task.input_types = types_of(member.node.inputs);
  task.output_types = types_of(members_[end - 1].node.outputs);
  task.input_gradients = member.node.propagate_down;
  task.parameter_gradients.clear();
  for (size_t i = begin; i < end; ++i) {
    if (i > begin) task.layers.push_back(members_[i].node.layer);
    const size_t parameters = task.layers.back()->parameters(member.inputs).size();
    for (size_t p = 0; p < parameters; ++p)
      task.parameter_gradients.push_back(members_[i].parameters[p]->wants_gradient);
  }
  return task;
}

std::vector<ElementType> GroupPricer::types_of(const std::vector<TensorIndex>& tensors) const {
  std::vector<ElementType> types;
  for (TensorIndex tensor : tensors) types.push_back(network_.tensors()[tensor].type);
  return types;
}

PricingOptions pricing_for(const DeviceGraph& machine, std::string_view dimensions, int history) {
  return {.devices = machine.devices(),
          .history = history,
          .dimensions = std::string(dimensions),
          .weights = machine.weights()};
}

std::vector<std::string_view> compared_strategies(const PricingOptions& options) {
  std::vector<std::string_view> names = built_in_strategies();
  if (!options.replicate) std::erase(names, "replicated");
  return names;
}

Priced GroupPricer::price(const ParallelConfig& config) { return Run(*this, config).summed(); }

std::optional<Priced> GroupPricer::price_replicated(const ParallelConfig& config) {
  if (!may_replicate(config)) return std::nullopt;
  return Run(*this, config).replicated();
}

GroupPricer::Ways GroupPricer::price_all_ways(const ParallelConfig& config) {
  Run run(*this, config);
  Ways ways;
  if (may_replicate(config)) ways.replicated = run.replicated();
  ways.summed = std::move(run).summed();
  return ways;
}

bool GroupPricer::may_replicate(const ParallelConfig& config) const {
  if (!options_.replicate || config.degrees.r > 1) return false;
  const auto bytes = replicate_bytes(network_, group_.nodes[0], config.degrees);
  return bytes && bytes->spared() > 0;
}

Priced price(const Network& network, const Group& group, const LayerStrategy& strategy,
             const PricingOptions& options, CostModel& costs) {
  GroupPricer pricer(network, group, options, costs);
  if (!facts_of(strategy.sync).replicates) return pricer.price(strategy.config);
  std::optional<Priced> replicated = pricer.price_replicated(strategy.config);
  ensure(replicated.has_value(), "a layer that replicates gradients can");
  return std::move(*replicated);
}

}  // namespace cortado::plan
