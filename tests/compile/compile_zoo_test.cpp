// What is simulated is what runs: the Programs that compile_job() makes for a simulator, and those that
// compile() makes on each rank for its executor, are the same in every step, buffer and wait.
#include <gtest/gtest.h>
#include <set>

#include "cortado/compile/compile.h"

#include "tests/compile/program_text.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

using testing::whole_text;

struct Case {
  std::string name;
  std::vector<int64_t> sample, labels{};
};
const std::vector<Case> zoo = {{"lenet", {1, 28, 28}},
                               {"cifar10_quick", {3, 32, 32}},
                               {"cifar10_full", {3, 32, 32}},
                               {"caffenet", {3, 227, 227}},
                               {"alexnet", {3, 224, 224}},
                               {"vgg-a", {3, 224, 224}},
                               {"vgg-16", {3, 224, 224}},
                               {"vgg-128", {3, 224, 224}},
                               {"vgg-256", {3, 224, 224}},
                               {"vgg-512", {3, 224, 224}},
                               {"googlenet", {3, 224, 224}},
                               {"inception-v3", {3, 299, 299}},
                               {"resnet-50", {3, 224, 224}},
                               {"inception-v3-aux", {3, 299, 299}},
                               {"wrn-50-2", {3, 224, 224}},
                               {"wrn-50-4", {3, 224, 224}},
                               {"densenet-121", {3, 224, 224}},
                               {"u-net", {1, 64, 64}, {64, 64}},
                               {"u-net-3d", {1, 16, 16, 16}, {16, 16, 16}}};

class CompileZoo : public ::testing::TestWithParam<Case> {};

const std::vector<std::string> strategies = {"data",     "model",    "owt",       "spatial",
                                             "random:1", "random:2", "replicated"};

// All Programs of a job are made; the first, the last and one between are compared.
void expect_same(const Network& net, const std::string& strategy, int ranks, KernelProfile& here) {
  SCOPED_TRACE(strategy + " on " + std::to_string(ranks));
  const Strategy found = load_strategy(strategy, net, ranks);
  CompileOptions options{
      .strategies = resolve(found, net, ranks, strategy), .schedule = found.schedule, .ranks = ranks};
  const std::vector<Program> simulated = compile_job(net, options, here);
  for (int rank : std::set<int>{0, ranks / 2, ranks - 1}) {
    options.rank = rank;
    ASSERT_EQ(whole_text(compile(net, options).program, net),
              whole_text(simulated[static_cast<size_t>(rank)], net));
  }
}

// Runs on 2 to 8 ranks; of large nets each strategy on one of these numbers.
TEST_P(CompileZoo, WhatIsSimulatedIsWhatRuns) {
  constexpr size_t large = 60;  // layers
  const auto& [name, sample, labels] = GetParam();
  const Network net = testing::zoo_net(name, 8, sample, labels);
  KernelProfile here = KernelProfile::here();
  for (size_t s = 0; s < strategies.size(); ++s)
    for (int ranks = 2; ranks <= 8; ++ranks)
      if (net.nodes().size() < large || static_cast<size_t>(ranks) == 2 + s)
        expect_same(net, strategies[s], ranks, here);
}

INSTANTIATE_TEST_SUITE_P(AllNets, CompileZoo, ::testing::ValuesIn(zoo), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace cortado
