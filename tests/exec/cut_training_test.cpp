// Parallel = single (docs/explanation/design.md, "Laws"): nets trained under random strategies on several
// ranks, which are threads here, end with the losses and weights of one rank.
#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <random>

#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/exec/executor.h"
#include "cortado/layers/filler.h"
#include "cortado/layers/sum_blocks.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/tune/place_branches.h"
#include "cortado/tune/tune_strategy.h"

#include "tests/base/part_of.h"
#include "tests/comm/forwarding_communicator.h"
#include "tests/exec/random_nets.h"
#include "tests/exec/test_device.h"

namespace cortado {
namespace {

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::vector<float>> weights;  // whole, canonical
  int64_t late_updates = 0, late_gradients = 0;       // of rank 0, in an iteration
  int64_t halves = 0;                                 // compute steps of half of the samples
  int64_t recomputed = 0, exchanged_again = 0;        // steps of all ranks
  Bytes arena;                                        // of all ranks
  std::vector<std::string> report;                    // of all devices
};

// The batch of an iteration: random numbers or, for exact sums, small integers.
std::vector<float> batch_of(const Shape& shape, uint64_t iteration, bool labels, bool integers) {
  std::vector<float> values(static_cast<size_t>(shape.size()));
  RandomStream stream{.seed = 5, .iteration = iteration, .owner = labels ? 1u : 2u};
  for (size_t i = 0; i < values.size(); ++i) {
    const double drawn = stream.uniform(i);
    values[i] = static_cast<float>(labels     ? std::floor(drawn * testing::classes)
                                   : integers ? std::floor(drawn * 5) - 2
                                              : 2 * drawn - 1);
  }
  return values;
}

// Source layers of a net that give this rank's part of each batch.
class Batches {
 public:
  Batches(const Network& net, bool integers) : net_(net), integers_(integers) {}

  std::map<std::string, BatchSource> sources() {
    std::map<std::string, BatchSource> sources;
    for (const auto& node : net_.nodes()) {
      if (node.layer->is_source()) sources[node.name] = [this, &node] { return next(node); };
    }
    return sources;
  }
  void restrict(std::map<std::string, BatchPart> parts) { parts_ = std::move(parts); }

 private:
  std::vector<const float*> next(const Network::Node& node) {
    auto& tensors = tensors_[node.name];
    const uint64_t iteration = ++iterations_[node.name];
    tensors.clear();
    std::vector<const float*> pointers;
    for (size_t top = 0; top < node.outputs.size(); ++top) {
      const Shape& shape = net_.tensors()[node.outputs[top]].shape;
      // Channels last, as readers give them, and this rank's part.
      tensors.push_back(
          part_of(shape, batch_of(shape, iteration, top == 1, integers_), parts_.at(node.name).tops[top]));
    }
    for (const auto& tensor : tensors) pointers.push_back(tensor.data());
    return pointers;
  }

  const Network& net_;
  bool integers_;
  std::map<std::string, BatchPart> parts_;
  std::map<std::string, std::vector<std::vector<float>>> tensors_;
  std::map<std::string, uint64_t> iterations_;
};

void gather(const Network& net, const Executor& executor, const ParameterStore& store, Trained& trained) {
  for (ParameterIndex p : indices(net.parameters())) {
    const EntryIndex index = executor.parameter_entries()[p];
    const auto& entry = store.entries()[index];
    if (!entry.held) continue;
    auto& whole = trained.weights[entry.name];
    whole.resize(static_cast<size_t>(entry.spec.shape.size()), NAN);
    const std::vector<float> slice = store.canonical(index);
    const Strides strides = row_major_strides(entry.spec.shape);
    const Shape shape = entry.slice.shape();
    for (size_t i = 0; i < slice.size(); ++i) {
      int64_t left = static_cast<int64_t>(i), at = 0;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        at += (entry.slice[axis].begin + left % shape[axis]) * strides[axis];
        left /= shape[axis];
      }
      whole[at] = slice[i];
    }
  }
}

// Small whole numbers as weights.
void set_integers(const Network& net, const Executor& executor, ParameterStore& store) {
  for (ParameterIndex p : indices(net.parameters())) {
    const EntryIndex index = executor.parameter_entries()[p];
    const auto& entry = store.entries()[index];
    if (!entry.held) continue;
    RandomStream stream{.seed = 9, .iteration = static_cast<uint64_t>(p.value())};
    std::vector<float> whole(static_cast<size_t>(entry.spec.shape.size()));
    for (size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<float>(stream.bits(i) % 3) - 1;
    store.set_from_whole(index, whole);
  }
}

// What ranks are: whether rank i is an emulated device, and the weights of all; none: as the environment
// says, and equal.
struct Ranks {
  std::function<bool(int)> emulated;
  std::vector<double> weights;
  bool gpu_kernels = false;  // on those
  device::DeviceOptions options{};
  bool mpi_reads = false;  // the memory of those
};

// As MPI that takes addresses of a device's memory.
class DeviceReader : public testing::ForwardingCommunicator {
 public:
  DeviceReader(Communicator& job, bool reads) : ForwardingCommunicator(job), reads_(reads) {}
  bool reads_device_memory() const override { return reads_; }

 private:
  bool reads_;
};

// Plain gradient descent.
Trained train(const Network& net, const Strategy& strategy, int ranks, bool integers, double rate,
              const std::string& kernels, int iterations = 3, const Ranks& made = {}, int threads = 0) {
  NodeStrategies strategies = resolve(strategy, net, ranks, "test");
  if (!made.weights.empty())
    for (NodeIndex n : indices(strategies))
      strategies[n].config = weighed(strategies[n].config, made.weights);
  Trained trained;
  std::mutex mutex;
  LocalJob job(ranks);
  job.run([&](Communicator& of_job) {
    DeviceReader communicator(of_job, made.mpi_reads);
    const ComputeThreads computing(threads > 0 ? threads : compute_threads());
    Batches batches(net, integers);
    const testing::TestDevice device(
        made.emulated ? made.emulated(communicator.rank()) : testing::TestDevice::named(), made.options);
    ParameterStore store(device);
    KernelChoice chosen{.kernels = kernels, .mixed_devices = made.gpu_kernels};
    if (made.gpu_kernels && made.emulated(communicator.rank())) {
      chosen.kernels = gpu_kernels;
      chosen.no_other = !store.device().runs_host_functions();
    }
    Compiled compiled = compile(net, {.strategies = strategies,
                                      .schedule = strategy.schedule,
                                      .kernels = chosen,
                                      .ranks = ranks,
                                      .rank = communicator.rank()});
    batches.restrict(compiled.program.samples());
    Executor executor(net, std::move(compiled), store, batches.sources(), {.communicator = &communicator});
    if (integers) set_integers(net, executor, store);
    std::vector<double> losses;
    for (int i = 0; i < iterations; ++i) {
      losses.push_back(executor.run(i, [&](EntryIndex index) {
        ParameterIndex parameter(0);
        while (executor.parameter_entries()[parameter] != index) ++parameter;
        const Range range = executor.updated_elements(parameter);
        testing::descend(store, index, static_cast<float>(rate), range);
      }));
    }
    executor.settle();
    std::lock_guard lock(mutex);
    trained.arena += executor.arena();
    for (const std::string& line : executor.device_report()) trained.report.push_back(line);
    for (const Step& step : executor.program().steps)
      if (step.again()) ++(step.is<steps::Exchange>() ? trained.exchanged_again : trained.recomputed);
    if (communicator.rank() == 0) {
      trained.losses = losses;
      for (const Step& step : executor.program().steps)
        if (step.late) ++(step.is<steps::Update>() ? trained.late_updates : trained.late_gradients);
      for (const Step& step : executor.program().steps)
        if (step.runs(Pass::forward) && !executor.program().works[step.work()].is_layer()) ++trained.halves;
    }
    gather(net, executor, store, trained);
  });
  return trained;
}

void expect_same(const Trained& expected, const Trained& actual, double tolerance) {
  ASSERT_EQ(expected.losses.size(), actual.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    ASSERT_NEAR(actual.losses[i], expected.losses[i], tolerance * (1 + std::abs(expected.losses[i])))
        << "iteration " << i;
  }
  for (const auto& [name, weights] : expected.weights) {
    const auto& other = actual.weights.at(name);
    double scale = 0;
    for (float value : weights) scale = std::max(scale, std::abs(static_cast<double>(value)));
    for (size_t k = 0; k < weights.size(); ++k)
      ASSERT_NEAR(other[k], weights[k], tolerance * (scale + 0.05)) << name << " element " << k;
  }
}

// Environment CORTADO_CASES raises the number of nets (docs/reference/testing.md).
int cases(int usual) {
  const char* wanted = std::getenv("CORTADO_CASES");
  return wanted ? std::atoi(wanted) : usual;
}

// Environment CORTADO_FIRST_CASE begins with another seed: a failing case alone.
int first_case() {
  const char* wanted = std::getenv("CORTADO_FIRST_CASE");
  return wanted ? std::atoi(wanted) : 0;
}

std::string describe(const Network& net, const Strategy& strategy, int ranks) {
  const NodeStrategies strategies = resolve(strategy, net, ranks, "test");
  std::string text = schedule_text(strategy.schedule) + "\n";
  for (NodeIndex n : indices(net.nodes())) {
    const auto& node = net.nodes()[n];
    text += fmt::format("{} {}: {} {}", node.name, node.layer->type(), strategies[n].config.text(),
                        name_of(strategies[n].sync));
    for (TensorIndex tensor : node.inputs) text += fmt::format(" {}", net.tensors()[tensor].shape.text());
    text += "\n";
  }
  return text;
}

Strategy alone(const Network& net) { return built_in_strategy("single", net, 1); }

TEST(CutTraining, RandomNetsUnderRandomStrategiesTrainAsOnOneRank) {
  for (int seed = first_case(); seed < first_case() + cases(25); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Trained single = train(net, alone(net), 1, false, 1e-3, "");
    for (int ranks : {2, 3, 4, 6, 8}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained cut;
      ASSERT_NO_THROW(cut = train(net, strategy, ranks, false, 1e-3, ""));
      expect_same(single, cut, 2e-5);
      if (HasFatalFailure()) return;
    }
  }
}

// All branches go on two blocks of devices, one after the other.
TEST(CutTraining, BranchesSideBySideTrainAsOnOneRank) {
  int trained = 0;
  for (int seed = first_case(); seed < first_case() + cases(25); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const auto sets = branch_sets(net);
    if (sets.empty()) continue;
    const Trained single = train(net, alone(net), 1, false, 1e-3, "");
    for (int ranks : {2, 4}) {
      const DeviceBlock whole{0, ranks};
      const auto blocks = in_proportion(whole, {1, 1});
      const BlockCut cut = block_cuts[static_cast<size_t>(seed + ranks / 2) % std::size(block_cuts)];
      const Strategy start = with_all_rules(built_in_strategy("data", net, ranks), net);
      Strategy strategy = start;
      for (const BranchSet& set : sets) {
        BranchPlaces places{.blocks = {}, .cut = cut, .join = false};
        for (size_t b = 0; b < set.branches.size(); ++b) places.blocks.push_back(blocks[b % 2]);
        strategy = placed(std::move(strategy), start, net, set, places, whole);
      }
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained side_by_side;
      ASSERT_NO_THROW(side_by_side = train(net, strategy, ranks, false, 1e-3, ""));
      expect_same(single, side_by_side, 2e-5);
      if (HasFatalFailure()) return;
      ++trained;
    }
  }
  EXPECT_GT(trained, 0);
}

// Sequences are cut, never the time; each rank carries the states of its own on from batch to batch.
Network recurrent_net() {
  const std::string text = R"(
layer { name: "data" type: "Input" top: "x" top: "label" top: "cont" top: "fixed"
  input_param { shape { dim: 6 dim: 6 dim: 5 } shape { dim: 6 dim: 6 } shape { dim: 6 dim: 6 } shape { dim: 6 dim: 2 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" bottom: "fixed" top: "y"
  recurrent_param { num_output: 7 weight_filler { type: "xavier" } } }
layer { name: "rnn" type: "RNN" bottom: "y" bottom: "cont" top: "z"
  recurrent_param { num_output: 8 weight_filler { type: "xavier" } } }
layer { name: "ip" type: "InnerProduct" bottom: "z" top: "ip"
  inner_product_param { num_output: 5 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" softmax_param { axis: 2 } })";
  return load_network(parse_net(text, "net.prototxt"), net_state(Phase::train), declared_source_shapes)
      .network;
}

TEST(CutTraining, RecurrentNetsTrainAsOnOneRank) {
  const Network net = recurrent_net();
  const Trained single = train(net, alone(net), 1, false, 0.05, "");
  int cut_layers = 0;
  for (int seed = 0; seed < 6; ++seed) {
    for (int ranks : {2, 3, 4}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      cut_layers += resolve(strategy, net, ranks, "test")[net.node("lstm")].config.degrees.c > 1;
      Trained cut;
      ASSERT_NO_THROW(cut = train(net, strategy, ranks, false, 0.05, ""));
      expect_same(single, cut, 2e-5);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(cut_layers, 3);
}

// bf16 keeps eight bits of a number: what is cut rounds elsewhere, and a rounding may turn a ReLU's sign.
TEST(CutTraining, RandomNetsInBf16TrainAsOnOneRankAndAsInF32) {
  int64_t narrow = 0;
  for (int seed = first_case() + 300; seed < first_case() + 300 + cases(15); ++seed) {
    const Network f32 = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Network net = f32.in(Precision::bf16);
    for (const auto& tensor : net.tensors()) narrow += tensor.type == ElementType::bf16;
    const Trained exact = train(f32, alone(f32), 1, false, 1e-3, "");
    const Trained single = train(net, alone(net), 1, false, 1e-3, "");
    {
      SCOPED_TRACE(fmt::format("seed {}, f32 and bf16\n{}", seed, describe(net, alone(net), 1)));
      expect_same(exact, single, 0.03);
      if (HasFatalFailure()) return;
    }
    for (int ranks : {2, 3, 4, 8}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained cut;
      ASSERT_NO_THROW(cut = train(net, strategy, ranks, false, 1e-3, ""));
      expect_same(single, cut, 0.03);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(narrow, 20);
}

// A convolution cut along its sum gives addends in f32, and `replicate` its whole gradient from bf16: both
// hold the weights in one order.
TEST(CutTraining, WholeGradientsOfSumsInBf16LieAsTheParameterDoes) {
  constexpr int seed = 1322, ranks = 8;  // such a net and strategy
  const Network net = testing::random_layers_net(seed).in(Precision::bf16);
  EXPECT_NO_THROW(train(net, random_strategy(seed, net, ranks), ranks, false, 1e-3, ""));
}

// The strategy with `precision` in the rules that `takes` tells by their number.
Strategy with_precision(Strategy strategy, Precision precision, const std::function<bool(size_t)>& takes) {
  for (size_t rule = 0; rule < strategy.rules.size(); ++rule)
    if (takes(rule)) strategy.rules[rule].layer.precision = precision;
  return strategy;
}

TEST(CutTraining, LayersAllInF32TrainANetOfBf16BitwiseAsOneOfF32) {
  for (int seed = first_case() + 400; seed < first_case() + 400 + cases(8); ++seed) {
    const Network f32 = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Network net = f32.in(Precision::bf16);
    for (int ranks : {1, 3}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), f32, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      const Trained expected = train(f32, strategy, ranks, false, 1e-3, "");
      const Trained all_f32 = train(
          net, with_precision(strategy, Precision::f32, [](size_t) { return true; }), ranks, false, 1e-3, "");
      EXPECT_EQ(all_f32.losses, expected.losses);
      EXPECT_EQ(all_f32.weights, expected.weights);
    }
  }
}

TEST(CutTraining, NetsOfBf16WithSomeLayersInF32TrainAsInF32) {
  for (int seed = first_case() + 500; seed < first_case() + 500 + cases(8); ++seed) {
    const Network f32 = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Network net = f32.in(Precision::bf16);
    const Trained exact = train(f32, alone(f32), 1, false, 1e-3, "");
    for (int ranks : {1, 2, 4}) {
      const auto every_other = [&](size_t rule) { return (rule + static_cast<size_t>(seed)) % 2 == 0; };
      const Strategy strategy = with_precision(random_strategy(static_cast<uint64_t>(seed), net, ranks),
                                               Precision::f32, every_other);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained mixed;
      ASSERT_NO_THROW(mixed = train(net, strategy, ranks, false, 1e-3, ""));
      expect_same(exact, mixed, 0.03);
      if (HasFatalFailure()) return;
    }
  }
}

// Sums of integers are exact, so the order in which ranks add cannot show: any difference is a wrong element.
TEST(CutTraining, IntegersTrainBitwiseAsOnOneRank) {
  for (int seed = first_case(); seed < first_case() + cases(30); ++seed) {
    const Network net = testing::random_exact_net(static_cast<uint32_t>(seed));
    const Trained single = train(net, alone(net), 1, true, 1, "", 1);
    for (const auto& [name, weights] : single.weights) {
      for (float value : weights)
        ASSERT_LT(std::abs(value), 1 << 20) << name << ": not exact, a test of nothing";
    }
    for (int ranks : {2, 3, 4, 6, 8}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      EXPECT_EQ(train(net, strategy, ranks, true, 1, "", 1).weights, single.weights);
      if (HasFailure()) return;
    }
  }
}

TEST(CutTraining, IsTheSameTwice) {
  const Network net = testing::random_layers_net(3);
  const Strategy strategy = random_strategy(3, net, 4);
  const Trained first = train(net, strategy, 4, false, 1e-3, ""),
                second = train(net, strategy, 4, false, 1e-3, "");
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.weights, second.weights);
}

// Late updates only come later: not a bit of the result changes.
TEST(CutTraining, LateUpdatesChangeNothing) {
  int64_t late = 0;
  for (int seed = first_case(); seed < first_case() + cases(10); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    for (int ranks : {2, 3, 4}) {
      Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      strategy.schedule.late_updates = false;
      const Trained at_once = train(net, strategy, ranks, false, 1e-3, "");
      strategy.schedule.late_updates = true;
      const Trained later = train(net, strategy, ranks, false, 1e-3, "");
      EXPECT_EQ(later.losses, at_once.losses);
      EXPECT_EQ(later.weights, at_once.weights);
      late += later.late_updates;
    }
  }
  EXPECT_GT(late, 0);
}

// Halos by halves of the samples: what is computed is the same, to the last bit where sums are exact.
TEST(CutTraining, HalvesTrainAsOnOneRank) {
  int64_t halves = 0;
  for (int seed = first_case(); seed < first_case() + cases(15); ++seed) {
    for (const bool exact : {true, false}) {
      const Network net = exact ? testing::random_exact_net(static_cast<uint32_t>(seed))
                                : testing::random_layers_net(static_cast<uint32_t>(seed));
      const Trained single = train(net, alone(net), 1, exact, exact ? 1 : 1e-3, "", exact ? 1 : 3);
      for (int ranks : {2, 3, 4}) {
        Strategy strategy = built_in_strategy("spatial", net, ranks);
        strategy.schedule.halves = true;
        SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
        const Trained cut = train(net, strategy, ranks, exact, exact ? 1 : 1e-3, "", exact ? 1 : 3);
        if (exact) {
          EXPECT_EQ(cut.weights, single.weights);
        } else {
          expect_same(single, cut, 2e-5);
        }
        halves += cut.halves;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(halves, 100);
}

// What is made again is what was there before, to the last bit; running statistics are updated once.
TEST(CutTraining, RecomputationChangesNothing) {
  int64_t recomputed = 0, exchanged = 0;
  for (int seed = first_case() + 600; seed < first_case() + 600 + cases(6); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const RandomStream stream{.seed = static_cast<uint64_t>(seed)};
    uint64_t drawn = 0;
    for (int ranks : {1, 2, 3, 4, 8}) {
      Strategy strategy = ranks == 1 ? alone(net) : random_strategy(static_cast<uint64_t>(seed), net, ranks);
      strategy.schedule.halves = seed % 2 == 0;
      const Trained kept = train(net, strategy, ranks, false, 1e-3, "");
      for (auto& rule : strategy.rules) rule.layer.recompute = stream.bits(drawn++) % 4 > 0;
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained again;
      ASSERT_NO_THROW(again = train(net, strategy, ranks, false, 1e-3, ""));
      EXPECT_EQ(again.losses, kept.losses);
      EXPECT_EQ(again.weights, kept.weights);
      recomputed += again.recomputed;
      exchanged += again.exchanged_again;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(recomputed, 30);
  EXPECT_GT(exchanged, 3);
}

// Every layer's gradients by every replica, where they can be: over samples alone, and under any cut.
TEST(CutTraining, ReplicatedGradientsTrainAsOnOneRank) {
  int64_t replicated = 0;
  for (int seed = first_case() + 200; seed < first_case() + 200 + cases(15); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Trained single = train(net, alone(net), 1, false, 1e-3, "");
    for (int ranks : {2, 3, 4, 8}) {
      for (const bool by_sample : {true, false}) {
        Strategy strategy = by_sample ? built_in_strategy("data", net, ranks)
                                      : random_strategy(static_cast<uint64_t>(seed), net, ranks);
        for (auto& rule : strategy.rules) {
          const bool can = sync_refusal(net, net.node(rule.pattern), GradientSync::replicate).empty();
          rule.layer.sync = can ? GradientSync::replicate : GradientSync::allreduce;
        }
        SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
        const Trained cut = train(net, strategy, ranks, false, 1e-3, "");
        expect_same(single, cut, 2e-5);
        replicated += cut.late_gradients;
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(replicated, 0);
}

// The forward pass runs again while what it gathered the first time may still be under way.
TEST(CutTraining, NonFiniteLossIsNamedWithReplicatedGradients) {
  for (int seed = 200; seed < 210; ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    Strategy strategy = built_in_strategy("data", net, 2);
    bool replicated = false;
    for (auto& rule : strategy.rules) {
      const NodeIndex node = net.node(rule.pattern);
      if (!sync_refusal(net, node, GradientSync::replicate).empty() || net.nodes()[node].parameters.empty())
        continue;
      rule.layer.sync = GradientSync::replicate;
      replicated = true;
    }
    if (!replicated) continue;
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, describe(net, strategy, 2)));
    LocalJob job(2);
    job.run([&](Communicator& communicator) {
      Batches batches(net, false);
      const testing::TestDevice device;
      ParameterStore store(device);
      Compiled compiled = compile(
          net, {.strategies = resolve(strategy, net, 2, "test"), .ranks = 2, .rank = communicator.rank()});
      batches.restrict(compiled.program.samples());
      Executor executor(net, std::move(compiled), store, batches.sources(), {.communicator = &communicator});
      const auto break_all = [&](EntryIndex entry) {
        store.device().queue().fill(store.entries()[entry].value, NAN, store.entries()[entry].elements);
      };
      EXPECT_TRUE(std::isfinite(executor.run(0, break_all)));
      EXPECT_FALSE(std::isfinite(executor.run(1, break_all)));
      EXPECT_NE(executor.first_non_finite(), "");
    });
  }
}

// Devices whose memory the host cannot touch beside ranks of the host, sharing layers in unequal blocks: the
// same kernels compute the same parts, so all bits are those of host ranks.
TEST(CutTraining, RanksOfMixedDevicesTrainBitwiseAsRanksOfTheHost) {
  const std::vector<double> weights{5, 1, 2, 3};
  int64_t unequal = 0;
  for (int seed = first_case() + 600; seed < first_case() + 600 + cases(12); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    for (int ranks : {2, 3, 4}) {
      const Strategy strategy = seed % 3 == 0 ? built_in_strategy("data", net, ranks)
                                              : random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      const Ranks host{[](int) { return false; }, {weights.begin(), weights.begin() + ranks}};
      const Ranks mixed{[&](int rank) { return (rank + seed) % 2 == 0; }, host.weights};
      for (const auto& node : resolve(strategy, net, ranks, "test"))
        unequal += !weighed(node.config, host.weights).weights.empty();
      const Trained expected = train(net, strategy, ranks, false, 1e-3, "", 3, host);
      const Trained actual = train(net, strategy, ranks, false, 1e-3, "", 3, mixed);
      EXPECT_EQ(actual.losses, expected.losses);
      EXPECT_EQ(actual.weights, expected.weights);
      expect_same(train(net, alone(net), 1, false, 1e-3, "", 3, {host.emulated, {}}), actual, 2e-5);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(unequal, 20);
}

// The same by every way that messages of devices can go, with and without graphs: emulated devices 0, 1 and 3
// have links, or MPI reads their memory, and rank 2 is the host's.
TEST(CutTraining, NoWayOfMessagesChangesABit) {
  int64_t by_links = 0, by_mpi = 0, by_staging = 0, graphs = 0;
  for (int seed = first_case() + 620; seed < first_case() + 620 + cases(5); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    for (int ranks : {2, 4}) {
      const Strategy strategy = seed % 3 == 0 ? built_in_strategy("spatial", net, ranks)
                                              : random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      const Trained expected =
          train(net, strategy, ranks, false, 1e-3, "", 4, {[](int) { return false; }, {}});
      for (const auto& [links, reads, graph] : std::vector<std::tuple<bool, bool, bool>>{
               {true, false, true}, {true, true, false}, {false, true, true}}) {
        const Ranks made{
            [](int rank) { return rank != 2; }, {}, false, {.graphs = graph, .links = links}, reads};
        const Trained actual = train(net, strategy, ranks, false, 1e-3, "", 4, made);
        EXPECT_EQ(actual.losses, expected.losses);
        EXPECT_EQ(actual.weights, expected.weights);
        for (const std::string& line : actual.report) {
          by_links += line.ends_with("a link between devices");
          by_mpi += line.find("MPI from") != std::string::npos;
          by_staging += line.find("pinned memory") != std::string::npos;
          graphs += line.starts_with("graphs: ") && line.find(" 0 graphs") == std::string::npos && graph;
        }
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(by_links, 0);
  EXPECT_GT(by_mpi, 0);
  EXPECT_GT(by_staging, 0);
  EXPECT_GT(graphs, 0);
}

// Kernels of GPUs on every other rank, which here compute on the device that CORTADO_TEST_DEVICE names or an
// emulated one, and the host's own on the others.
TEST(CutTraining, RanksOfGpuKernelsTrainWithRanksOfTheHostAsOneRank) {
  int64_t trained = 0;
  for (int seed = first_case() + 700; seed < first_case() + 700 + cases(15); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Trained single = train(net, alone(net), 1, false, 1e-3, "", 3, {[](int) { return false; }, {}});
    for (int ranks : {1, 2, 3}) {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      const Ranks mixed{[&](int rank) { return (rank + seed) % 2 == 0; }, {}, true};
      Trained cut;
      try {
        cut = train(net, strategy, ranks, false, 1e-3, "", 3, mixed);
      } catch (const UserError& refused) {  // of a GPU: a layer that it does not know
        ASSERT_THAT(refused.what(), ::testing::HasSubstr("gpu")) << refused.what();
        continue;
      }
      expect_same(single, cut, 2e-5);
      ++trained;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(trained, 0);
}

// Reproducible: not one bit depends on how many ranks share the samples, or on their threads.
TEST(CutTraining, ReproducibleNetsTrainBitwiseAsOnOneRank) {
  for (int seed = first_case() + 600; seed < first_case() + 600 + cases(8); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed), 8);
    const Trained single = train(net, alone(net), 1, false, 1e-3, reproducible_kernels, 3, {}, 1);
    expect_same(train(net, alone(net), 1, false, 1e-3, ""), single, 2e-5);
    for (const auto& [ranks, threads] :
         std::vector<std::pair<int, int>>{{1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}, {4, 2}, {5, 1}, {8, 1}}) {
      const Strategy strategy = built_in_strategy("data", net, ranks);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks of {} threads\n{}", seed, ranks, threads,
                               describe(net, strategy, ranks)));
      const Trained cut = train(net, strategy, ranks, false, 1e-3, reproducible_kernels, 3, {}, threads);
      EXPECT_EQ(cut.losses, single.losses);
      EXPECT_EQ(cut.weights, single.weights);
      if (HasFailure()) return;
    }
  }
}

// Devices of unequal worth would take parts that are nodes of the tree, but not those that its sums go by.
TEST(CutTraining, ReproducibleSharesAreThoseOfTheTree) {
  const Network net = testing::random_layers_net(static_cast<uint32_t>(first_case()) + 600, 8);
  Strategy strategy = built_in_strategy("data", net, 4);
  int weighed = 0;
  for (Strategy::Rule& rule : strategy.rules) {
    if (rule.layer.config.degrees.n != 4) continue;
    rule.layer.config.weights = {4, 2, 1, 1};
    ++weighed;
  }
  EXPECT_GT(weighed, 0);
  const Trained single = train(net, alone(net), 1, false, 1e-3, reproducible_kernels);
  const Trained cut = train(net, strategy, 4, false, 1e-3, reproducible_kernels);
  EXPECT_EQ(cut.losses, single.losses);
  EXPECT_EQ(cut.weights, single.weights);
}

// Cuts each layer its own way, by samples and, where its outputs are blocks, by channel; layers that may be
// one kernel, and those that read a tensor several times, as what they read.
Strategy reproducible_mixture(int seed, const Network& net, int ranks, int& channels) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  const auto draw = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  Strategy strategy = built_in_strategy("data", net, ranks);
  std::map<std::string, ParallelConfig> configs;  // of layers, by their tops
  for (Strategy::Rule& rule : strategy.rules) {
    const auto& node = net.nodes()[net.node(rule.pattern)];
    ParallelConfig& config = rule.layer.config;
    const bool has_blocks =
        channel_blocks(*node.layer, net.shapes_of(node.inputs), net.shapes_of(node.outputs)) > 1;
    const auto repeated = std::ranges::find_if(
        node.inputs, [&](TensorIndex input) { return std::ranges::count(node.inputs, input) > 1; });
    const auto& bottom = net.tensors()[repeated == node.inputs.end() ? node.inputs[0] : *repeated];
    if (repeated != node.inputs.end() || net.nodes()[bottom.producer].layer->may_fuse_with(*node.layer)) {
      config = configs.at(bottom.name);
    } else if (config.degrees.n > 1) {
      config.degrees = {.n = 1 << draw(3)};
      while (config.degrees.n > ranks) config.degrees.n /= 2;
      if (has_blocks && draw(3) > 0) {
        config.degrees = {.n = config.degrees.n > 1 && ranks > 2 ? 2 : 1, .c = 2};
        ++channels;
      }
      config.devices.resize(static_cast<size_t>(config.degrees.product()));
      std::iota(config.devices.begin(), config.devices.end(), draw(ranks - config.degrees.product() + 1));
    }
    for (TensorIndex top : node.outputs) configs[net.tensors()[top].name] = config;
  }
  return strategy;
}

TEST(CutTraining, ReproducibleMixturesTrainBitwiseAsOnOneRank) {
  int channels = 0;
  for (int seed = first_case() + 700; seed < first_case() + 700 + cases(8); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed), 8);
    const Trained single = train(net, alone(net), 1, false, 1e-3, reproducible_kernels);
    for (int ranks : {2, 4}) {
      const Strategy strategy = reproducible_mixture(seed, net, ranks, channels);
      SCOPED_TRACE(fmt::format("seed {}, {} ranks\n{}", seed, ranks, describe(net, strategy, ranks)));
      Trained cut;
      ASSERT_NO_THROW(cut = train(net, strategy, ranks, false, 1e-3, reproducible_kernels));
      EXPECT_EQ(cut.losses, single.losses);
      EXPECT_EQ(cut.weights, single.weights);
      if (HasFailure()) return;
    }
  }
  EXPECT_TRUE(channels > 0 || cases(8) < 8);
}

// What would change a bit is refused by the name of its layer: random cuts train to the same bits, or not.
TEST(CutTraining, ReproducibleRandomCutsAreRefusedByLayer) {
  int refused = 0;
  for (int seed = 720; seed < 726; ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed), 8);
    const Trained single = train(net, alone(net), 1, false, 1e-3, reproducible_kernels);
    try {
      const Strategy strategy = random_strategy(static_cast<uint64_t>(seed), net, 4);
      const Trained cut = train(net, strategy, 4, false, 1e-3, reproducible_kernels);
      EXPECT_EQ(cut.weights, single.weights) << describe(net, strategy, 4);
    } catch (const UserError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("reproducible: layer '")) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(CutTraining, BuiltInStrategiesTrainAsOnOneRank) {
  for (int seed = 100; seed < 100 + cases(10); ++seed) {
    const Network net = testing::random_layers_net(static_cast<uint32_t>(seed));
    const Trained single = train(net, alone(net), 1, false, 1e-3, "");
    for (const auto name : built_in_strategies()) {
      const Strategy strategy = built_in_strategy(name, net, 4);
      SCOPED_TRACE(fmt::format("seed {}, {}\n{}", seed, name, describe(net, strategy, 4)));
      expect_same(single, train(net, strategy, 4, false, 1e-3, ""), 2e-5);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cortado
