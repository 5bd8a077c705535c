#include "cortado/train/compare_cut.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <ranges>
#include <thread>

#include "cortado/base/activity.h"
#include "cortado/base/error.h"
#include "cortado/exec/box_copy.h"
#include "cortado/program/tags.h"
#include "cortado/train/gather.h"
#include "cortado/train/optimizer.h"
#include "cortado/train/tensor_comparer.h"

namespace cortado {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// One training: its data, weights and executor.
class Trainee {
 public:
  // `job`: null for the uncut one.
  Trainee(const ComparedTraining& training, const CompileOptions& options, Communicator* job)
      : training_(training),
        compiled_(compile(training.network, options)),
        sources_(training.data(compiled_.program.samples())),
        parameters_(job ? training.device : device::host()),
        executor_(training.network, std::move(compiled_), parameters_, std::move(sources_),
                  {.communicator = job}),
        cut_(parameter_cut_of(executor_, job)) {}

  std::vector<double> train() {
    SolverOptions solver;
    solver.update.momentum = 0.9;
    Optimizer optimizer(solver, parameters_, cut_);
    std::vector<double> losses;
    for (int i = 0; i < training_.iterations; ++i) {
      const Optimizer::Batch batch{.iteration = i, .rate = training_.rate};
      losses.push_back(executor_.run(static_cast<uint64_t>(i), [&optimizer, batch](EntryIndex entry) {
        optimizer.take_gradient(entry, batch);
      }));
      optimizer.end_iteration(batch);
    }
    executor_.settle();
    return losses;
  }

  Executor& executor() { return executor_; }
  const ParameterStore& parameters() const { return parameters_; }
  const ParameterCut& cut() const { return cut_; }
  const ParameterStore::Entry& entry(ParameterIndex p) const {
    return parameters_.entries()[cut_.entries()[p]];
  }

  // The whole gradient of a parameter, canonical, at rank 0.
  std::vector<float> parameter_gradient(ParameterIndex p) const {
    const float* own = entry(p).gradient;
    return gather_history(cut_, parameters_, p, own ? own + cut_.updates(p).begin : nullptr);
  }

 private:
  const ComparedTraining& training_;
  Compiled compiled_;                           // until the executor has them
  std::map<std::string, BatchSource> sources_;  // the same
  ParameterStore parameters_;
  Executor executor_;
  ParameterCut cut_;
};

// On the host, by its own kernels where the cut training is another device's.
CompileOptions uncut(const ComparedTraining& training) {
  const bool same = training.device.host_accessible() && !training.cut.kernels.mixed_devices;
  return {.kernels = same ? training.cut.kernels : KernelChoice{}, .fuse = training.cut.fuse};
}

// Runs `work` at rank 0, while the others sleep: what waits in a blocking call takes a processor.
void at_rank_0_alone(Communicator& job, const std::function<void()>& work) {
  float word = 0;
  std::vector<MessagePart> sends, receives;
  if (job.rank() == 0) {
    work();
    for (int peer = 1; peer < job.size(); ++peer) sends.push_back({peer, &word, 1});
  } else {
    receives.push_back({0, &word, 1});
  }
  const auto signal = job.exchange(std::move(sends), std::move(receives), end_of_rank_0_tag);
  const ActivityScope waiting("the end of rank 0's part", 0);
  signal->start();
  while (!signal->test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

// A parameter or its gradient, uncut, and how far the cut one is from it.
struct ParameterDifference {
  double magnitude = 0;
  Difference difference{};
};

// The differences of all parameters as those of the layers they belong to.
void enter(const Network& network, const std::map<ParameterIndex, ParameterDifference>& differences,
           std::optional<double> LayerDifference::*column,
           IndexedVector<NodeIndex, LayerDifference>& layers) {
  double most = 0;
  for (const auto& [p, parameter] : differences) most = std::max(most, parameter.magnitude);
  for (const auto& [p, parameter] : differences) {
    const double scale = std::max(parameter.magnitude, magnitude_floor * most);
    const double relative = parameter.difference.largest() == 0 ? 0 : parameter.difference.largest() / scale;
    keep_largest(layers[network.parameters()[p].declared_by].*column, relative);
  }
}

// The last layer whose gradients are divided by deviations of the batch: those of all before it pass it.
NodeIndex last_statistics(const Network& network) {
  NodeIndex last{-1};
  for (NodeIndex n : indices(network.nodes()))
    if (network.nodes()[n].layer->sums_statistics(Phase::train)) last = n;
  return last;
}

// Enters the gradients of weights that differ beyond their limit.
void blame_weights(const Network& network, const std::map<ParameterIndex, ParameterDifference>& differences,
                   IndexedVector<NodeIndex, LayerDifference>& layers) {
  double most = 0;
  for (const auto& [p, parameter] : differences) most = std::max(most, parameter.magnitude);
  const NodeIndex normalized = last_statistics(network);
  for (const auto& [p, parameter] : differences) {
    const auto& info = network.parameters()[p];
    const double limit =
        info.declared_by > normalized ? weight_gradient_limit : normalized_weight_gradient_limit;
    keep_first(layers[info.declared_by].weight_gradient_fault,
               parameter.difference.fault(fmt::format("gradients of weights '{}'", info.name), limit,
                                          magnitude_floor * most));
  }
}

// Iteration 1 with every tensor kept.
void compare_first_iteration(const ComparedTraining& training, CutComparison& comparison) {
  const Network& network = training.network;
  Communicator& job = training.job;
  CompileOptions alone = uncut(training), together = training.cut;
  alone.keep_tensors = together.keep_tensors = true;
  std::unique_ptr<Trainee> single;
  at_rank_0_alone(job, [&] {
    single = std::make_unique<Trainee>(training, alone, nullptr);
    single->executor().run(0);
  });
  Trainee cut(training, together, &job);
  cut.executor().run(0);

  TensorComparer tensors(network, job, cut.executor(), single ? &single->executor() : nullptr);
  for (NodeIndex n : indices(network.nodes())) {
    for (TensorIndex tensor : network.nodes()[n].outputs) {
      LayerDifference& layer = comparison.layers[n];
      tensors.compare(tensor, TensorComparer::Which::activation, layer);
      tensors.compare(tensor, TensorComparer::Which::gradient, layer);
    }
  }
  std::map<ParameterIndex, ParameterDifference> differences;
  for (ParameterIndex p : indices(network.parameters())) {
    if (!network.parameters()[p].wants_gradient || !network.learns()) continue;
    const std::vector<float> together_gradient = cut.parameter_gradient(p);
    if (!single) continue;
    const std::vector<float> expected = single->parameter_gradient(p);
    differences[p].magnitude = largest_magnitude(expected);
    differences[p].difference.add(expected, together_gradient, "");
  }
  enter(network, differences, &LayerDifference::weight_gradient, comparison.layers);
  blame_weights(network, differences, comparison.layers);
}

// The slice of parameter `p` that each rank holds against the uncut weights.
std::optional<ParameterDifference> weight_difference(Communicator& job, const Trainee& cut,
                                                     const Trainee* single, ParameterIndex p) {
  const EntryIndex entry = cut.cut().entries()[p];
  if (job.rank() > 0) {
    if (cut.entry(p).held) job.send(0, cut.parameters().canonical(entry));
    return std::nullopt;
  }
  const std::vector<float> whole = single->parameters().canonical(single->cut().entries()[p]);
  const Box all = Box::whole(cut.entry(p).spec.shape);
  ParameterDifference result{.magnitude = largest_magnitude(whole)};
  for (const ParameterCut::Piece& piece : cut.cut().pieces(p)) {
    std::vector<float> expected(static_cast<size_t>(piece.slice.shape().size()));
    copy_common(all, whole.data(), piece.slice, expected.data());
    for (const ParameterCut::Holder& holder : piece.holders) {
      std::vector<float> values(expected.size());
      if (holder.rank == 0) values = cut.parameters().canonical(entry);
      if (holder.rank > 0) job.receive(holder.rank, values);
      result.difference.add(expected, values, fmt::format(" of the slice of rank {}", holder.rank));
    }
  }
  return result;
}

void compare_training(const ComparedTraining& training, CutComparison& comparison) {
  Communicator& job = training.job;
  std::unique_ptr<Trainee> single;
  at_rank_0_alone(job, [&] {
    single = std::make_unique<Trainee>(training, uncut(training), nullptr);
    comparison.uncut_losses = single->train();
  });
  Trainee cut(training, training.cut, &job);
  comparison.cut_losses = cut.train();
  std::map<ParameterIndex, ParameterDifference> differences;
  for (ParameterIndex p : indices(training.network.parameters())) {
    if (const auto difference = weight_difference(job, cut, single.get(), p)) differences[p] = *difference;
  }
  enter(training.network, differences, &LayerDifference::weight, comparison.layers);
}

// "layer 'conv2' (activations 'conv2' differ by ...)"; empty when none is beyond the limits.
std::string first_different(const CutComparison& comparison) {
  for (const LayerDifference& layer : comparison.layers) {
    for (const std::string& fault : {layer.lost_parts, layer.activation_fault})
      if (!fault.empty()) return fmt::format("layer '{}' ({})", layer.layer, fault);
  }
  for (const LayerDifference& layer : std::views::reverse(comparison.layers)) {
    for (const std::string& fault : {layer.gradient_fault, layer.weight_gradient_fault})
      if (!fault.empty()) return fmt::format("layer '{}' ({})", layer.layer, fault);
  }
  return {};
}

bool tensors_agree(const CutComparison& comparison) {
  return std::ranges::all_of(comparison.layers, [](const LayerDifference& layer) {
    return layer.lost_parts.empty() && layer.activation_fault.empty() && layer.weight_gradient_fault.empty();
  });
}

}  // namespace

double CutComparison::loss_difference(size_t iteration) const {
  const double expected = uncut_losses.at(iteration), actual = cut_losses.at(iteration);
  if (expected == actual) return 0;
  const double difference = std::abs(actual - expected) / std::abs(expected);
  return std::isfinite(difference) ? difference : infinite;
}

CutComparison compare_cut_training(const ComparedTraining& training) {
  CutComparison comparison;
  for (const auto& node : training.network.nodes())
    comparison.layers.push_back(
        {.layer = node.name, .activation = {}, .gradient = {}, .weight_gradient = {}, .weight = {}});
  compare_first_iteration(training, comparison);
  compare_training(training, comparison);
  return comparison;
}

void check_finite(const CutComparison& comparison, double rate) {
  for (double loss : comparison.uncut_losses) {
    if (std::isfinite(loss)) continue;
    throw UserError(
        fmt::format("--rate {}: the loss of the uncut training becomes {}; give a smaller rate", rate, loss));
  }
}

std::string describe_difference(const CutComparison& c) {
  const std::string layer = first_different(c);
  const std::string named = "the first layer that differs is " + layer;
  auto beyond = [&](size_t iteration, double limit) {
    if (c.loss_difference(iteration) <= limit) return std::string();
    return fmt::format(
        "the cut training differs from the uncut one: at iteration {} the loss is {} where it should be {}; "
        "{}",
        iteration + 1, c.cut_losses[iteration], c.uncut_losses[iteration],
        layer.empty() ? "no layer differs at iteration 1 by more than rounding errors, which training may "
                        "blow up: try a smaller --rate"
                      : named);
  };
  std::string found = beyond(0, first_loss_limit);
  if (found.empty()) found = beyond(c.uncut_losses.size() - 1, last_loss_limit);
  if (!found.empty() || tensors_agree(c)) return found;
  return "the cut training differs from the uncut one, though the losses agree: " + named;
}

}  // namespace cortado
