#include "cortado/program/lower.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"

#include "tests/program/nets.h"

namespace cortado {
namespace {

using testing::facts_of;
using ::testing::HasSubstr;
using testing::NetBuilder;

template <typename Kind>
int count(const Program& program) {
  return static_cast<int>(std::ranges::count_if(program.steps, [](const Step& s) { return s.is<Kind>(); }));
}
int count(const Program& program, Pass pass) {
  return static_cast<int>(std::ranges::count_if(program.steps, [&](const Step& s) { return s.runs(pass); }));
}

TEST(Lower, FusesActivationsAfterConvolutions) {
  Network net = NetBuilder().conv("a", "data").relu("a").conv("b", "a").loss("b", "data").build();
  Program program = lower(net, facts_of);
  ASSERT_EQ(program.works.size(), 4u);  // data, a + relu, b, loss
  EXPECT_EQ(program.works[WorkIndex(1)].task.layers.size(), 2u);
  EXPECT_EQ(program.works[WorkIndex(1)].nodes.size(), 2u);
  Program plain = lower(net, facts_of, {.fuse = false, .after_pass = {}});
  EXPECT_EQ(plain.works.size(), 5u);
}

TEST(Lower, DoesNotFuseWhatOthersRead) {
  Network net = NetBuilder().conv("a", "data").tanh("a", "b").sum("c", {"a", "b"}).loss("c", "data").build();
  Program program = lower(net, facts_of);
  for (const Work& work : program.works) EXPECT_LE(work.task.layers.size(), 1u);
  // a is read by the sum after tanh: tanh may not overwrite it.
  EXPECT_NE(program.tensor_buffer(net.tensor("a")), program.tensor_buffer(net.tensor("b")));
}

TEST(Lower, WritesInPlaceWhereNobodyNeedsTheOldValue) {
  Network net = NetBuilder().conv("a", "data").tanh("a", "b").conv("c", "b").loss("c", "data").build();
  Program program = lower(net, facts_of);
  EXPECT_EQ(program.tensor_buffer(net.tensor("a")), program.tensor_buffer(net.tensor("b")));
  Program kept = lower(net, facts_of, {.keep_tensors = true, .after_pass = {}});
  EXPECT_NE(kept.tensor_buffer(net.tensor("a")), kept.tensor_buffer(net.tensor("b")));
}

TEST(Lower, SkipsTheGradientOfTheData) {
  Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  Program program = lower(net, facts_of);
  EXPECT_EQ(count(program, Pass::backward_weights), 1);
  EXPECT_EQ(count(program, Pass::backward), 1);  // of the loss; the convolution has none
  EXPECT_FALSE(program.gradient_buffer(net.tensor("data")));
}

TEST(Lower, SumsTheGradientsOfSeveralConsumers) {
  Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "a").loss("b", "c").build();
  Program program = lower(net, facts_of);
  EXPECT_EQ(count<steps::Accumulate>(program), 1);
}

TEST(Lower, PassesTheGradientOfASumThrough) {
  Network net = NetBuilder().conv("a", "data").conv("b", "a").sum("c", {"a", "b"}).loss("c", "data").build();
  Program program = lower(net, facts_of);
  EXPECT_EQ(program.gradient_buffer(net.tensor("c")), program.gradient_buffer(net.tensor("b")));
}

TEST(Lower, UpdatesASharedParameterOnce) {
  Network net = NetBuilder().conv("a", "data", "s").conv("b", "a", "s").loss("b", "data").build();
  ASSERT_EQ(net.parameters().size(), 2u);
  Program program = lower(net, facts_of);
  EXPECT_EQ(count<steps::Update>(program), 2);
  EXPECT_EQ(count<steps::AccumulateParameter>(program), 2);
}

TEST(Lower, TestNetsHaveNoBackwardPass) {
  Network net = NetBuilder().conv("a", "data").relu("a").loss("a", "data").build(Phase::test);
  Program program = lower(net, facts_of);
  EXPECT_EQ(program.forward_end, static_cast<int>(program.steps.size()));
  EXPECT_EQ(count<steps::Barrier>(program), 0);
}

// Losses are known, and every message of the forward pass has ended, before anything of the backward pass.
TEST(Lower, ABarrierStandsBetweenThePasses) {
  Network net = NetBuilder().conv("a", "data").relu("a").loss("a", "data").build();
  const Program program = lower(net, facts_of);
  ASSERT_EQ(count<steps::Barrier>(program), 1);
  const StepIndex forward_end(program.forward_end);
  const Step& barrier = program.steps[forward_end];
  EXPECT_TRUE(barrier.is<steps::Barrier>());
  for (StepIndex s(0); s < forward_end; ++s) {
    const bool waited = std::ranges::find(barrier.waits, s) != barrier.waits.end();
    EXPECT_EQ(waited, program.steps[s].lane == Lane::communication);
  }
}

TEST(Lower, SharesMemoryBetweenTensorsThatDoNotLiveTogether) {
  NetBuilder builder;
  std::string last = "data";
  for (int i = 0; i < 20; ++i) {
    builder.conv("c" + std::to_string(i), last);
    last = "c" + std::to_string(i);
  }
  Network net = builder.loss(last, "data").build(Phase::test);
  Program program = lower(net, facts_of);
  int64_t one = net.tensors()[net.tensor("c0")].shape.size() * 4;
  EXPECT_LE(program.arena.count, 4 * one);
}

TEST(Verify, HoldsOnRandomNets) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Network net = testing::random_net(seed);
    for (bool fuse : {false, true}) {
      for (bool keep : {false, true}) {
        EXPECT_NO_THROW(lower(net, facts_of, {.keep_tensors = keep, .fuse = fuse, .after_pass = {}}));
      }
    }
  }
}

TEST(Program, PrintsItsSteps) {
  Network net = NetBuilder().conv("a", "data").relu("a").loss("a", "data").build();
  std::string text = lower(net, facts_of).text(net);
  EXPECT_THAT(text, HasSubstr("load"));
  EXPECT_THAT(text, HasSubstr("forward              a+relu_a"));
  EXPECT_THAT(text, HasSubstr("backward-weights     a+relu_a"));
}

}  // namespace
}  // namespace cortado
