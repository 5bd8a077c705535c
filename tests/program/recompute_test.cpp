// Tensors that are made again for the backward pass.
#include "cortado/program/recompute.h"

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::texts_of;

// data - a - b - c - d - e - f - g - h, convolutions, and a loss with data.
Network chain() {
  testing::NetBuilder net;
  std::string before = "data";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    net.conv(name, before);
    before = name;
  }
  return net.loss("h", "data").build();
}

NodeStrategies again(const Network& net, NodeStrategies strategies, const std::vector<std::string>& layers) {
  for (const std::string& layer : layers) strategies[net.node(layer)].recompute = true;
  return strategies;
}

Program lowered(const Network& net, const std::vector<std::string>& layers) {
  const NodeStrategies none(net.nodes().size());
  return lower(net, place(net, again(net, none, layers), 1), testing::facts_of);
}

std::vector<std::string> backward_without_updates_of(const Network& net, const Program& program) {
  auto texts = texts_of(net, program);
  texts.erase(texts.begin(), texts.begin() + program.forward_end + 1);
  std::erase_if(texts, [](const std::string& text) { return text.starts_with("update"); });
  return texts;
}

TEST(Recompute, RunsASegmentAgainBeforeItIsNeeded) {
  const Network net = chain();
  const auto texts = backward_without_updates_of(net, lowered(net, {"a", "b", "d"}));
  const std::vector<std::string> expected{"seed",
                                          "backward loss",
                                          "backward-weights h",
                                          "backward h",
                                          "backward-weights g",
                                          "backward g",
                                          "backward-weights f",
                                          "backward f",
                                          "recompute d",
                                          "backward-weights e",
                                          "backward e",
                                          "backward-weights d",
                                          "backward d",
                                          "recompute a",
                                          "recompute b",
                                          "backward-weights c",
                                          "backward c",
                                          "backward-weights b",
                                          "backward b",
                                          "backward-weights a"};
  EXPECT_EQ(texts, expected);
}

TEST(Recompute, MakesTheArenaSmaller) {
  const Network net = chain();
  const int64_t all = lowered(net, {}).arena.count;
  const int64_t segments = lowered(net, {"a", "b", "d", "e", "g"}).arena.count;
  const int64_t tensor = 2 * 4 * 6 * 6 * 4;
  EXPECT_GE(all, 9 * tensor);
  EXPECT_LE(segments, 7 * tensor);
}

TEST(Recompute, KeepsLossesAndWhatIsReported) {
  testing::NetBuilder builder;
  builder.conv("a", "data").conv("b", "a").conv("seen", "a");
  const Network net = builder.loss("b", "data").build();
  const NodeStrategies none(net.nodes().size());
  const Placement placement = place(net, again(net, none, {"a", "b", "seen", "loss"}), 1);
  for (const auto& operation : placement.operations) {
    if (!operation.node) continue;
    const std::string& name = net.nodes()[operation.node].name;
    EXPECT_EQ(operation.recomputed, name == "a" || name == "b") << name;
  }
}

// The halo comes once more, under another tag, and all ranks agree.
TEST(Recompute, ExchangesHalosAgain) {
  const Network net = chain();
  for (const bool halves : {false, true}) {
    const NodeStrategies rows = again(net, testing::all(net, {.h = 2}), {"a", "b", "d"});
    const auto programs = testing::lower_job(net, rows, 2, false, {.halves = halves});
    verify_job(programs);
    int exchanges = 0;
    for (const Step& step : programs[0].steps) exchanges += step.is<steps::Exchange>() && step.again();
    EXPECT_EQ(exchanges, halves ? 6 : 3);
  }
}

TEST(Recompute, RandomProgramsAreValid) {
  int again = 0, messages = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    const Network net = testing::random_net(seed);
    Strategy strategy = random_strategy(seed, net, ranks);
    std::mt19937 random(seed);
    for (auto& rule : strategy.rules) rule.layer.recompute = random() % 2 == 0;
    SCOPED_TRACE(fmt::format("seed {}, {} ranks", seed, ranks));
    strategy.schedule.halves = seed % 3 == 0;
    const auto programs =
        testing::lower_job(net, resolve(strategy, net, ranks, "random"), ranks, false, strategy.schedule);
    verify_job(programs);
    for (const Program& program : programs) {
      for (const Step& step : program.steps) {
        again += step.again() && step.is<steps::Compute>();
        messages += step.again() && step.is<steps::Exchange>();
      }
    }
  }
  EXPECT_GT(again, 300);
  EXPECT_GT(messages, 30);
}

class BrokenRecompute : public ::testing::Test {
 protected:
  void expect_found(const std::string& what) {
    try {
      verify(program_, net_);
      FAIL() << "not found: " << what;
    } catch (const InternalError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(what));
    }
  }
  Step& step(const std::string& text) { return program_.steps[testing::step_of(net_, program_, text)]; }

  const Network net_ = chain();
  Program program_ = lowered(net_, {"a", "b", "d"});
};

TEST_F(BrokenRecompute, AStepThatDoesNotRunAgainIsFound) {
  step("recompute b") = {.action = steps::Seed{}, .writes = {program_.whole(BufferIndex(0))}};
  EXPECT_THROW(verify(program_, net_), InternalError);
}

TEST_F(BrokenRecompute, OtherInputsAreFound) {
  Step& b = step("recompute b");
  Step& other = step("forward c");
  b.reads = {other.reads[0]};  // what b itself makes
  EXPECT_THROW(verify(program_, net_), InternalError);
}

TEST_F(BrokenRecompute, ASecondRunIsFound) {
  step("recompute b").action = step("recompute a").action;
  expect_found("runs again more than once");
}

TEST_F(BrokenRecompute, ReadsBetweenTheLivesAreFound) {
  Step& late = step("backward f");
  late.reads.push_back(step("forward b").reads[0]);
  expect_found("outside its life");
}

}  // namespace
}  // namespace cortado
