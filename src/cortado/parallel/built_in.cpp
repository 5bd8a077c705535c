#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "cortado/base/error.h"
#include "cortado/base/random.h"
#include "cortado/parallel/config_fit.h"
#include "cortado/parallel/layer_cut.h"
#include "cortado/parallel/strategy.h"

namespace cortado {
namespace {

// A layer as the built-in strategies see it.
struct Cuttable {
  Cuttable(const Network& of, const Network::Node& layer, int job_ranks)
      : network(of),
        node(layer),
        inputs(of.shapes_of(layer.inputs)),
        outputs(of.shapes_of(layer.outputs)),
        ranks(job_ranks) {}
  const Network& network;
  const Network::Node& node;
  std::vector<Shape> inputs, outputs;
  int ranks;
  bool after_product = false;  // its only input comes from an inner product, through layers of flat tensors

  Cuts cuts() const { return node.layer->cuts(inputs); }
  // Cuts over as many devices as `wanted` asks for and the shapes allow; nothing when that is one.
  std::optional<ParallelConfig> over(Degrees wanted) const {
    if (wanted.c * wanted.r > 1 && !has_slices(network, node)) return std::nullopt;
    ParallelConfig config{.degrees = wanted, .devices = {}, .weights = {}};
    config.devices.resize(static_cast<size_t>(wanted.product()));
    std::iota(config.devices.begin(), config.devices.end(), 0);
    config = clamped(config, *node.layer, inputs, outputs);
    if (config.degrees.product() == 1 || !reads(config)) return std::nullopt;
    return config;
  }
  bool reads(const ParallelConfig& config) const { return parts_read(*node.layer, inputs, outputs, config); }
};

using Rule = std::function<std::optional<ParallelConfig>(const Cuttable&)>;

std::optional<ParallelConfig> by_sample(const Cuttable& layer) { return layer.over({.n = layer.ranks}); }

std::optional<ParallelConfig> by_channel(const Cuttable& layer) {
  auto config = layer.over({.c = layer.ranks});
  return config ? config : by_sample(layer);
}

// Rows and columns in the squarest grid of all ranks.
std::optional<ParallelConfig> by_space(const Cuttable& layer) {
  const Cuts cuts = layer.cuts();
  if (!cuts.h && !cuts.w) return by_sample(layer);
  int columns = static_cast<int>(std::sqrt(static_cast<double>(layer.ranks)));
  while (layer.ranks % columns != 0) --columns;
  const Degrees grid = cuts.h ? Degrees{.h = layer.ranks / columns, .w = columns} : Degrees{.w = layer.ranks};
  auto config = layer.over(grid);
  return config && config->degrees == grid ? config : by_sample(layer);
}

// Cut by channels from the first inner product after the data on; by samples before it, and at the loss.
std::optional<ParallelConfig> one_weird_trick(const Cuttable& layer) {
  const bool product = layer.node.layer->type() == "InnerProduct";
  return product || layer.after_product ? by_channel(layer) : by_sample(layer);
}

std::optional<ParallelConfig> on_one_device(const Cuttable&) { return std::nullopt; }

struct BuiltIn {
  std::string_view name;
  std::optional<ParallelConfig> (*rule)(const Cuttable&);
  GradientSync sync = GradientSync::allreduce;  // `replicate`: wherever that spares bytes
};

// In the order in which they are listed and tried.
constexpr BuiltIn built_ins[] = {
    {"single", on_one_device},
    {"data", by_sample},
    {"model", by_channel},
    {"owt", one_weird_trick},
    {"spatial", by_space},
    {"replicated", by_sample, GradientSync::replicate},
    {"server", by_sample, GradientSync::server},
};

Strategy strategy_by(const Network& network, int ranks, const Rule& rule) {
  Strategy strategy{.net = network.name(), .ranks = ranks, .rules = {}};
  IndexedVector<NodeIndex, bool> carries;  // an inner product, or a layer of flat tensors after one
  for (const auto& node : network.nodes()) {
    Cuttable layer(network, node, ranks);
    layer.after_product = node.inputs.size() == 1 && carries[network.tensors()[node.inputs[0]].producer];
    const bool flat = layer.outputs.size() == 1 && layer.outputs[0].rank() <= 2;
    carries.push_back(node.layer->type() == "InnerProduct" || (layer.after_product && flat));
    if (node.layer->is_source()) continue;
    LayerStrategy strategy_of_layer;
    if (auto config = rule(layer)) strategy_of_layer.config = *config;
    strategy.rules.push_back({node.name, strategy_of_layer});
  }
  return strategy;
}

// Lets every replica compute whole gradients wherever that spares bytes.
void replicate_gradients(Strategy& strategy, const Network& network) {
  for (Strategy::Rule& rule : strategy.rules) {
    const auto bytes = replicate_bytes(network, network.node(rule.pattern), rule.layer.config.degrees);
    if (bytes && bytes->spared() > 0) rule.layer.sync = GradientSync::replicate;
  }
}

// Lets servers sum all gradients that are summed.
void serve_gradients(Strategy& strategy) {
  for (Strategy::Rule& rule : strategy.rules)
    if (rule.layer.config.devices.size() > 1) rule.layer.sync = GradientSync::server;
}

// Draws small numbers, one after the other.
class Dice {
 public:
  explicit Dice(uint64_t seed) : stream_{.seed = seed, .iteration = 0, .owner = 77} {}
  int below(int count) { return static_cast<int>(stream_.bits(next_++) % static_cast<uint64_t>(count)); }

 private:
  RandomStream stream_;
  uint64_t next_ = 0;
};

std::optional<ParallelConfig> drawn(Dice& dice, const Cuttable& layer) {
  Degrees degrees;
  int left = layer.ranks;
  constexpr int Degrees::*members[] = {&Degrees::n, &Degrees::c, &Degrees::h,
                                       &Degrees::w, &Degrees::d, &Degrees::r};
  for (int tries = 0; tries < 4; ++tries) {
    const int degree = 1 + dice.below(left);
    int& chosen = degrees.*members[dice.below(6)];
    if (chosen > 1) continue;
    chosen = degree;
    left /= degree;
  }
  auto config = layer.over(degrees);
  if (!config) return config;
  if (config->degrees.r > 1 && config->degrees.r * config->degrees.c > layer.outputs[0][1])
    return std::nullopt;
  // Any devices, in any order.
  std::vector<int> all(static_cast<size_t>(layer.ranks));
  std::iota(all.begin(), all.end(), 0);
  for (size_t i = all.size(); i > 1; --i)
    std::swap(all[i - 1], all[static_cast<size_t>(dice.below(static_cast<int>(i)))]);
  std::copy_n(all.begin(), config->devices.size(), config->devices.begin());
  return config;
}

}  // namespace

std::vector<std::string_view> built_in_strategies() {
  std::vector<std::string_view> names;
  for (const BuiltIn& built_in : built_ins) names.push_back(built_in.name);
  return names;
}

bool is_built_in(std::string_view strategy) {
  return std::ranges::find(built_ins, strategy, &BuiltIn::name) != std::end(built_ins);
}

bool is_opponent(std::string_view strategy) {
  const auto* const found = std::ranges::find(built_ins, strategy, &BuiltIn::name);
  return found != std::end(built_ins) && found->sync == GradientSync::server;
}

Strategy built_in_strategy(std::string_view name, const Network& network, int ranks) {
  const auto built_in = std::ranges::find(built_ins, name, &BuiltIn::name);
  ensure(built_in != std::end(built_ins), "there is no built-in strategy of that name");
  Strategy strategy = strategy_by(network, ranks, built_in->rule);
  if (built_in->sync == GradientSync::replicate) replicate_gradients(strategy, network);
  if (built_in->sync == GradientSync::server) serve_gradients(strategy);
  return strategy;
}

namespace {

Schedule drawn_schedule(Dice& dice) {
  constexpr GradientChunks::Kind kinds[] = {GradientChunks::Kind::parameter, GradientChunks::Kind::layer,
                                            GradientChunks::Kind::first, GradientChunks::Kind::bytes,
                                            GradientChunks::Kind::one};
  Schedule schedule;
  GradientChunks& chunks = schedule.chunks = {.kind = kinds[dice.below(5)]};
  if (chunks.kind == GradientChunks::Kind::first) chunks.layers = 1 + static_cast<int>(dice.below(3));
  if (chunks.kind == GradientChunks::Kind::bytes) chunks.bytes = {int64_t{256} << dice.below(4)};
  for (const ScheduleSwitch& one : schedule_switches) schedule.*one.member = dice.below(2) == 0;
  return schedule;
}

}  // namespace

Strategy random_strategy(uint64_t seed, const Network& network, int ranks) {
  Dice dice(seed);
  Strategy strategy = strategy_by(network, ranks, [&](const Cuttable& layer) { return drawn(dice, layer); });
  // Layers that share a parameter are cut the same way.
  std::map<std::string, LayerStrategy*> by_name;
  for (auto& rule : strategy.rules) {
    by_name[rule.pattern] = &rule.layer;
    constexpr GradientSync syncs[] = {GradientSync::allreduce, GradientSync::allreduce, GradientSync::owner,
                                      GradientSync::replicate};
    rule.layer.sync = syncs[dice.below(4)];
    if (!sync_refusal(network, network.node(rule.pattern), rule.layer.sync).empty())
      rule.layer.sync = GradientSync::allreduce;
  }
  for (const auto& parameter : network.parameters()) {
    if (parameter.users.size() < 2) continue;
    for (NodeIndex user : parameter.users) *by_name[network.nodes()[user].name] = {};
  }
  strategy.schedule = drawn_schedule(dice);
  // Some blocks follow weights.
  for (auto& rule : strategy.rules) {
    ParallelConfig config = rule.layer.config;
    if (!can_weigh(config.degrees) || dice.below(4) > 0) continue;
    for (size_t i = 0; i < config.devices.size(); ++i) config.weights.push_back(1 + dice.below(4));
    const auto& node = network.nodes()[network.node(rule.pattern)];
    if (Cuttable(network, node, ranks).reads(config)) rule.layer.config = std::move(config);
  }
  return strategy;
}

}  // namespace cortado
