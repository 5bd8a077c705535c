#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>

#include "cortado/base/error.h"
#include "cortado/base/random.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/train/gather.h"
#include "cortado/train/optimizer.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using Solver = UpdateOptions::Solver;

// Parameters: a/weight {4, 4, 3, 3}, a/bias {4}, b/weight {4, 4, 3, 3}, b/bias {4}.
const Network& network() {
  static const Network net = testing::NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  return net;
}

// Elements one after the other, `padding` zeros in front: a format that is not the canonical one.
ParameterFormat reversed(int64_t count, int64_t padding) {
  ParameterFormat format;
  format.name = "reversed";
  format.elements = count + padding;
  format.from_canonical = [=](const float* canonical, float* own) {
    std::fill_n(own, padding, 0.0f);
    std::reverse_copy(canonical, canonical + count, own + padding);
  };
  format.to_canonical = [=](const float* own, float* canonical) {
    std::reverse_copy(own + padding, own + padding + count, canonical);
  };
  return format;
}

// How the four parameters lie on the ranks.
struct Cut {
  std::string name;
  int ranks = 1;
  std::function<ParameterSlices(int rank)> slices;
  std::function<ParameterCut::Updates(int rank)> updates;  // may be empty
};

Box weight_part(Range outputs, Range inputs) {
  Box box = Box::whole({4, 4, 3, 3});
  box[0] = outputs;
  box[1] = inputs;
  return box;
}

Box bias_part(Range outputs) {
  Box box = Box::whole({4});
  box[0] = outputs;
  return box;
}

ParameterSlices all_whole(int) {
  const Box weight = weight_part({0, 4}, {0, 4}), bias = bias_part({0, 4});
  return {weight, bias, weight, bias};
}

std::vector<Cut> cuts() {
  const Box weight = weight_part({0, 4}, {0, 4}), bias = bias_part({0, 4});
  std::vector<Cut> cuts;
  cuts.push_back({"one", 1, all_whole, {}});
  cuts.push_back({"replicas", 3, all_whole, {}});
  // a by filters, unequal; b whole everywhere.
  cuts.push_back({"filters",
                  2,
                  [=](int rank) -> ParameterSlices {
                    Range range = rank == 0 ? Range{0, 3} : Range{3, 4};
                    return {weight_part(range, {0, 4}), bias_part(range), weight, bias};
                  },
                  {}});
  // a by filters and input channels, its bias on the ranks of the first channels; b on ranks 1 and 2 alone.
  cuts.push_back({"mixed",
                  4,
                  [=](int rank) -> ParameterSlices {
                    Range outputs = rank < 2 ? Range{0, 2} : Range{2, 4};
                    Range inputs = rank % 2 ? Range{1, 4} : Range{0, 1};
                    std::optional<Box> lone_bias, b_weight, b_bias;
                    if (rank % 2 == 0) lone_bias = bias_part(outputs);
                    if (rank == 1 || rank == 2) b_weight = weight, b_bias = bias;
                    return {weight_part(outputs, inputs), lone_bias, b_weight, b_bias};
                  },
                  {}});
  // a in two slices of two replicas each.
  cuts.push_back({"segments",
                  4,
                  [=](int rank) -> ParameterSlices {
                    Range range = rank % 2 ? Range{2, 4} : Range{0, 2};
                    return {weight_part(range, {0, 4}), bias_part(range), weight, bias};
                  },
                  {}});
  // The same, each replica the owner of a part of the weight; the second of b's three owners has nothing.
  cuts.push_back({"owners", 4, cuts.back().slices, [](int rank) -> ParameterCut::Updates {
                    const Range of_b[] = {{0, 70}, {70, 70}, {70, 100}, {100, 149}};
                    return {rank < 2 ? Range{0, 20} : Range{20, 77}, std::nullopt, of_b[rank], std::nullopt};
                  }});
  return cuts;
}

std::vector<float> numbers(const std::string& owner, uint64_t iteration, const Shape& shape) {
  RandomStream random{.seed = 3, .iteration = iteration, .owner = RandomStream::owner_of(owner)};
  std::vector<float> values;
  for (int64_t i = 0; i < shape.size(); ++i) values.push_back(static_cast<float>(random.normal(i, 0, 0, 1)));
  return values;
}

// Whole tensors, per parameter and, for the history, round.
struct State {
  std::vector<std::vector<float>> parameters;
  std::vector<std::vector<float>> history;
};

// Trains by gradients that depend on (iteration, element) alone, from `begin` to `end`, on this rank's part.
// Returns the state at rank 0.
State train(Communicator& ranks, const Cut& cut, const SolverOptions& options, int begin, int end,
            const State& from) {
  ParameterStore store;
  IndexedVector<ParameterIndex, ParameterFormat> formats;
  const ParameterSlices slices = cut.slices(ranks.rank());
  for (const auto& slice : slices)
    formats.push_back(slice && slice->rank() > 1 ? reversed(slice->shape().size(), 5) : ParameterFormat{});
  const ParameterEntries entries = store.add(network(), formats, 1, slices);
  const auto updates = cut.updates ? cut.updates(ranks.rank()) : ParameterCut::Updates{};
  Optimizer optimizer(options, store, ParameterCut(ranks, store, entries, updates));
  for (size_t i = 0; i < from.parameters.size(); ++i) {
    const ParameterIndex p(i);
    store.set_from_whole(entries[p], from.parameters[i]);
    for (int round = 0; round < optimizer.rounds(); ++round)
      take_history(optimizer.cut(), store, p, from.history[2 * i + round],
                   optimizer.history(entries[p], round));
  }
  for (int iteration = begin; iteration < end; ++iteration) {
    Optimizer::Batch batch{.iteration = iteration, .rate = 0.1};
    for (int b = 0; b < options.iter_size; ++b) {
      batch.number = b;
      for (EntryIndex e : entries) {
        const auto& entry = store.entries()[e];
        if (!entry.held) continue;
        auto gradient = numbers(entry.name, 10 * iteration + b, entry.spec.shape);
        store.from_canonical(e, store.slice_of(e, gradient).data(), entry.gradient);
        optimizer.take_gradient(e, batch);
      }
    }
    optimizer.end_iteration(batch);
    for (ParameterIndex p : indices(entries)) {  // what owners updated goes to the other replicas
      const auto* piece = optimizer.cut().own_piece(p);
      if (!piece || !piece->owned()) continue;
      std::vector<int> group;
      std::vector<int64_t> counts;
      for (const auto& holder : piece->holders) {
        group.push_back(holder.rank);
        counts.push_back(holder.updates.size());
      }
      auto gather = ranks.allgather(group, store.entries()[entries[p]].value, counts);
      gather->start();
      while (!gather->test()) std::this_thread::yield();
    }
  }
  State state;
  for (ParameterIndex p : indices(entries)) {
    state.parameters.push_back(gather_parameter(optimizer.cut(), store, p));
    for (int round = 0; round < 2; ++round)
      state.history.push_back(
          round < optimizer.rounds()
              ? gather_history(optimizer.cut(), store, p, optimizer.history(entries[p], round))
              : std::vector<float>{});
  }
  return state;
}

State train(const Cut& cut, const SolverOptions& options, int begin, int end, const State& from = {}) {
  State state;
  LocalJob job(cut.ranks);
  job.run([&](Communicator& ranks) {
    State mine = train(ranks, cut, options, begin, end, from);
    if (ranks.rank() == 0) state = std::move(mine);
  });
  return state;
}

void expect_near(const State& state, const State& expected, double tolerance) {
  auto compare = [&](const auto& a, const auto& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t t = 0; t < a.size(); ++t) {
      ASSERT_EQ(a[t].size(), b[t].size()) << "tensor " << t;
      for (size_t i = 0; i < a[t].size(); ++i)
        ASSERT_NEAR(a[t][i], b[t][i], tolerance * (1 + std::abs(b[t][i])))
            << "tensor " << t << " element " << i;
    }
  };
  compare(state.parameters, expected.parameters);
  compare(state.history, expected.history);
}

SolverOptions solver(Solver solver, double clip = -1, int iter_size = 1) {
  SolverOptions options;
  options.update = {.solver = solver, .momentum = 0.9, .weight_decay = 0.01, .lars_eta = 0.1};
  options.clip_gradients = clip;
  options.iter_size = iter_size;
  return options;
}

// The store alone fills the same values, and the solver makes the same of them, whatever the cut.
TEST(CutParameters, EveryCutTrainsAsOneRank) {
  const Cut one = cuts()[0];
  for (const SolverOptions& options : {solver(Solver::sgd), solver(Solver::adam, -1, 2),
                                       solver(Solver::sgd, 3), solver(Solver::adam, 2, 2)}) {
    State expected = train(one, options, 0, 4);
    for (const Cut& cut : cuts()) {
      SCOPED_TRACE(cut.name);
      expect_near(train(cut, options, 0, 4), expected, options.clip_gradients > 0 ? 1e-6 : 0);
    }
  }
}

TEST(CutParameters, LarsTakesTheNormsOfWholeParameters) {
  for (double clip : {-1.0, 3.0}) {
    State expected = train(cuts()[0], solver(Solver::lars, clip), 0, 4);
    for (const Cut& cut : cuts()) {
      SCOPED_TRACE(cut.name);
      if (cut.name != "owners") {
        expect_near(train(cut, solver(Solver::lars, clip), 0, 4), expected, 1e-6);
        continue;
      }
      try {
        train(cut, solver(Solver::lars, clip), 0, 1);
        FAIL() << "owners and LARS";
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("parameter a/weight: the LARS solver needs"),
                  std::string::npos);
      }
    }
  }
}

// Stopped under one cut, gone on with under another.
TEST(CutParameters, ResumesUnderAnyOtherCut) {
  const SolverOptions options = solver(Solver::adam);
  State expected = train(cuts()[0], options, 0, 5);
  for (const Cut& before : cuts()) {
    State middle = train(before, options, 0, 2);
    for (const Cut& after : cuts()) {
      SCOPED_TRACE(before.name + " to " + after.name);
      expect_near(train(after, options, 2, 5, middle), expected, 0);
    }
  }
}

// The sum of squares over one rank's elements is that rank's own business, those over slices all ranks'.
TEST(CutParameters, CountsEveryElementOnce) {
  for (const Cut& cut : cuts()) {
    SCOPED_TRACE(cut.name);
    IndexedVector<ParameterIndex, int64_t> counted(4);
    std::mutex mutex;
    LocalJob job(cut.ranks);
    job.run([&](Communicator& ranks) {
      ParameterStore store;
      auto slices = cut.slices(ranks.rank());
      IndexedVector<ParameterIndex, ParameterFormat> formats;
      for (const auto& slice : slices)
        formats.push_back(slice && slice->rank() > 1 ? reversed(slice->shape().size(), 5)
                                                     : ParameterFormat{});
      auto entries = store.add(network(), formats, 1, slices);
      ParameterCut known(ranks, store, entries,
                         cut.updates ? cut.updates(ranks.rank()) : ParameterCut::Updates{});
      std::lock_guard lock(mutex);
      for (ParameterIndex p : indices(network().parameters()))
        if (known.counts(p)) counted[p] += known.updates(p).size();
    });
    for (ParameterIndex p : indices(network().parameters())) {
      const int64_t size = network().parameters()[p].spec.shape.size();
      EXPECT_GE(counted[p], size);
      EXPECT_LE(counted[p], size + 5 * cut.ranks) << "more than its padding";
    }
  }
}

TEST(Ranks, LearnWhatTheFirstOneDid) {
  LocalJob job(3);
  std::mutex mutex;
  int refused = 0;
  job.run([&](Communicator& ranks) {
    EXPECT_EQ(at_first_rank(&ranks, [&] { return "written by " + std::to_string(ranks.rank()); }),
              "written by 0");
    try {
      at_first_rank(&ranks, []() -> std::string { throw UserError("the disk is full"); });
    } catch (const UserError& error) {
      std::lock_guard lock(mutex);
      refused += std::string(error.what()) == "the disk is full";
    }
    EXPECT_EQ(largest_of_ranks(&ranks, {ranks.rank(), 7, -ranks.rank()}), (std::vector<int64_t>{2, 7, 0}));
  });
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(at_first_rank(nullptr, [] { return std::string("alone"); }), "alone");
}

}  // namespace
}  // namespace cortado
