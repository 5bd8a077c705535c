#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/parallel/config.h"
#include "cortado/parallel/gradient_sync.h"
#include "cortado/parallel/schedule.h"

namespace cortado {

// How one layer is cut.
struct LayerStrategy {
  ParallelConfig config;
  GradientSync sync = GradientSync::allreduce;
  bool local_batch_norm = false;         // statistics of each device's own part, as PyTorch's DDP has them
  std::optional<Precision> precision{};  // none: the network's; f32 is the exception in one of bf16
  bool recompute = false;                // outputs are not kept for the backward pass but computed again
  bool operator==(const LayerStrategy&) const = default;
};

// One LayerStrategy per layer, by name or by pattern ("conv*", where * matches any letters). A layer's own
// name goes before patterns, an earlier pattern before a later one. Source layers need none: every rank reads
// what its layers need. A strategy changes speed; results only by `local_batch_norm` and `precision`.
struct Strategy {
  struct Rule {
    std::string pattern;
    LayerStrategy layer;
    std::string planned_for;  // identity_of the layer that it was made for; empty: any
    bool operator==(const Rule&) const = default;
  };
  std::string net;  // the net it was made for; empty: any
  int ranks = 1;
  std::vector<Rule> rules;
  Schedule schedule;
  bool operator==(const Strategy&) const = default;

  const LayerStrategy* find(std::string_view layer) const;  // null when no rule fits
};

// Finds the rules of many layers quickly. The strategy must not change meanwhile.
class RuleFinder {
 public:
  explicit RuleFinder(const Strategy& strategy);
  const Strategy::Rule* named(std::string_view layer) const;  // the rule of that very name; null: none
  const LayerStrategy* find(std::string_view layer) const;    // as Strategy::find
  // The same; a rule of the layer's name in the file goes before patterns, too, and what computes a part of a
  // layer follows it.
  const LayerStrategy* find(const Network::Node& node) const;

 private:
  std::unordered_map<std::string_view, const Strategy::Rule*> named_;
  std::vector<const Strategy::Rule*> patterns_;  // those with a *
};

// Gives the layers that `pattern` fits another way to sum gradients. Throws UserError where it fits none.
void set_sync(Strategy& strategy, const Network& network, const std::string& pattern, GradientSync sync);

// The strategy with all its layers on devices as spread() has them.
Strategy spread(Strategy strategy);

// Says of each layer whether its outputs are computed again for the backward pass.
void set_recompute(Strategy& strategy, const Network& network, const IndexedVector<NodeIndex, bool>& again);

// The layers of a net in about as many segments as each has layers, where all is computed again that no other
// segment reads (Chen et al. 2016, "Training deep nets with sublinear memory cost").
IndexedVector<NodeIndex, bool> recompute_by_segments(const Network& network);

// Why the gradients of the layer's parameters cannot be summed that way; "": they can.
std::string sync_refusal(const Network& network, NodeIndex node, GradientSync sync);

// Whether gradients of the layer's parameters are summed over replicas under such degrees, where `sync` does
// not spare it.
bool sums_gradients(const Network& network, NodeIndex node, const Degrees& degrees);

// The gradients that a replica of a layer sums under such degrees, and what it would gather to compute them
// whole (GradientSync::replicate). Nothing where there is no other replica, where that is impossible, or
// where no gradient is wanted.
struct ReplicateBytes {
  Bytes summed, gathered;
  int64_t spared() const { return 2 * summed.count - gathered.count; }  // a sum sends its bytes twice
};
std::optional<ReplicateBytes> replicate_bytes(const Network& network, NodeIndex node, const Degrees& degrees);

// False where the layer and others see a parameter in several shapes (share_mode: PERMISSIVE): they cannot be
// cut along c or r.
bool has_slices(const Network& network, const Network::Node& node);

// The text by which a plan recognizes a layer: its type and the shapes of its outputs and parameters,
// "Convolution 8x64x55x55, weight 64x3x11x11, bias 64".
std::string identity_of(const Network& network, NodeIndex node);

// A strategy per node of a network; meaningless for source layers.
using NodeStrategies = IndexedVector<NodeIndex, LayerStrategy>;

// The configuration of each node. Throws UserError naming strategy, layer, reason and remedy: a layer without
// a rule, a rule that fits no layer or was planned for another one, a configuration that the layer or the job
// does not allow, unequal configurations of layers that share a parameter.
NodeStrategies resolve(const Strategy& strategy, const Network& network, int ranks, const std::string& where);

// The same for a net that shares parameters with one already cut (a test net beside its train net): its
// layers are cut like the layers of their name, as far as their shapes allow; others by sample or space.
NodeStrategies resolve_beside(const Network& network, const Network& first, const NodeStrategies& strategies,
                              int ranks);

// Built-in strategies.
//   single      every layer on device 0
//   data        every layer by sample
//   model       every layer by output channel where it can be, else by sample
//   owt         convolutions and what follows them by sample, inner products and what follows them by channel
//               (Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014)
//   spatial     every layer by rows and columns where it can be, else by sample
//   replicated  every layer by sample, and whole gradients computed by every replica wherever that spares
//               bytes (Lee et al. 2017, section III.C.2)
//   server      every layer by sample, and gradients summed by servers in the hosts' memory, with nothing
//               hidden: what the papers compare with
// A layer with fewer samples, channels or rows than devices is cut over fewer.
std::vector<std::string_view> built_in_strategies();
bool is_built_in(std::string_view strategy);
bool is_opponent(std::string_view strategy);  // a built-in one to compare with, which nothing chooses
Strategy built_in_strategy(std::string_view name, const Network& network, int ranks);

// A strategy that cuts every layer another way, and a schedule, drawn from `seed`; for tests and `cortado
// verify`.
Strategy random_strategy(uint64_t seed, const Network& network, int ranks);

// JSON, version 1 (docs/reference/strategy.md). Throws UserError naming file, layer, key.
Strategy parse_strategy(const std::string& json, const std::string& where);
std::string strategy_text(const Strategy& strategy);

// The most ranks that a strategy may be for.
inline constexpr int most_ranks = 10'000;

// What --strategy names: a built-in one, a file (.json), or "random:SEED", the random strategy of that seed.
Strategy load_strategy(const std::string& name_or_path, const Network& network, int ranks);

}  // namespace cortado
