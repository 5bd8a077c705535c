// The pass "place backward": gradients, their sums, and updates.
#include <map>
#include <set>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using ::testing::ElementsAre;
using testing::facts_of;
using testing::NetBuilder;
using testing::step_of;
using testing::texts_of;
using testing::whole;
using testing::with_backward;

std::vector<std::string> backward_of(const Network& net, const Program& program) {
  auto texts = texts_of(net, program);
  texts.erase(texts.begin(), texts.begin() + program.forward_end);
  return texts;
}

TEST(PlaceBackward, GoesFromTheLossToTheFirstLayer) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  EXPECT_THAT(backward_of(net, with_backward(net, whole(net))),
              ElementsAre("barrier", "seed", "backward loss", "backward-weights b", "backward b", "update 2",
                          "update 3", "backward-weights a", "update 0", "update 1"));
}

// What is summed is updated after the pass, so that computing never waits for a sum.
TEST(PlaceBackward, SumsGradientsOverReplicasAndUpdatesLast) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  EXPECT_THAT(backward_of(net, with_backward(net, {strategies, 2, 1})),
              ElementsAre("barrier", "seed", "backward loss", "backward-weights b", "sum-gradient 2",
                          "sum-gradient 3", "backward b", "backward-weights a", "sum-gradient 0",
                          "sum-gradient 1", "update 2", "update 3", "update 0", "update 1"));
  strategies[net.node("b")].sync = GradientSync::owner;
  const Program owned = with_backward(net, {strategies, 2, 1});
  EXPECT_THAT(backward_of(net, owned),
              ElementsAre("barrier", "seed", "backward loss", "backward-weights b", "scatter-gradient 2",
                          "scatter-gradient 3", "backward b", "backward-weights a", "sum-gradient 0",
                          "sum-gradient 1", "update 2", "gather-parameter 2", "update 3",
                          "gather-parameter 3", "update 0", "update 1"));
  for (const Step& step : owned.steps) {
    if (step.parameters().empty() || step.is<steps::Update>()) continue;
    EXPECT_THAT(step.group().ranks(), ElementsAre(0, 1));
    EXPECT_EQ(step.lane, Lane::communication);
  }
}

// Slices by channel are held once: nothing to sum.
TEST(PlaceBackward, SumsNothingThatOneRankHasAlone) {
  const Network net = NetBuilder().conv("a", "data").loss("a", "data").build();
  for (const std::string& text : backward_of(net, with_backward(net, {all(net, {.c = 2}), 2})))
    EXPECT_EQ(text.find("sum-gradient"), std::string::npos) << text;
}

// What the next layer waits for goes first; the weights' gradient is computed meanwhile.
TEST(PlaceBackward, InputGradientsThatAreExchangedComeBeforeWeightGradients) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "b").loss("c", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("c")] = strategies[net.node("loss")] = {};
  for (int rank : {0, 1}) {
    const Program program = with_backward(net, {strategies, 2, rank});
    const auto texts = backward_of(net, program);
    const auto place = [&](const char* text) { return std::ranges::find(texts, text) - texts.begin(); };
    EXPECT_LT(place("backward b"), place("exchange to b"));
    EXPECT_LT(place("exchange to b"), place("backward-weights b"));
    EXPECT_LT(place("backward-weights b"), place("backward-weights a"));
    EXPECT_LT(place("backward-weights a"), std::ssize(texts));
    for (const Work& work : program.works) {
      const std::string name = name_of(work, net);
      EXPECT_EQ(work.input_gradients_first, name == "b" || name == "c") << name;
    }
  }
}

TEST(PlaceBackward, ExchangesGradientsByTheAdjointOfWhatMoved) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  const Program program = with_backward(net, {all(net, {.h = 2}), 2});
  std::map<std::string, std::vector<int>> tags;
  for (const Step& step : program.steps) {
    const auto* exchange = step.as<steps::Exchange>();
    if (!exchange || program.works[exchange->work].nodes.empty()) continue;
    tags[name_of(program.works[exchange->work], net)].push_back(exchange->tag);
    if (!exchange->backward) continue;
    EXPECT_EQ(exchange->from, program.works[exchange->work].output_gradients[0]);
    EXPECT_EQ(exchange->to, program.works[exchange->work].input_gradients[0]);
    EXPECT_TRUE(program.movement_of(step).sums);
  }
  ASSERT_EQ(tags["to b"].size(), 2u);
  EXPECT_EQ(tags["to b"][1], tags["to b"][0] + 1);
  EXPECT_FALSE(tags.contains("to a"));  // ranks read what they need, and the data wants no gradient
}

TEST(PlaceBackward, SumsWithinALayerComeBeforeItsStep) {
  const Network net = NetBuilder().conv("a", "data").tanh("a", "b").loss("b", "data").build();
  const auto texts = backward_of(net, with_backward(net, {all(net, {.n = 2}), 2}));
  EXPECT_THAT(std::vector(texts.begin() + 3, texts.begin() + 6),
              ElementsAre("backward-partial b", "sum-statistics b", "backward b"));
}

// Runs the backward steps of a net on one rank on counts in place of gradients: every loss is seeded with 1,
// each layer hands its output gradients' sum on to each input. A gradient is then the number of paths from
// its tensor to the losses. A kernel that masks its output's gradient makes three of each path.
class CountedPaths {
 public:
  CountedPaths(const Network& net, const Program& program) : net_(net), program_(program) {
    for (const Work& work : program.works)
      if (work.facts.overwrites_output_gradients) masks_.insert(work.nodes.back());
  }

  void run() {
    for (const Step& step : program_.steps) take(step);
    for (ParameterIndex p : indices(net_.parameters()))
      EXPECT_EQ(updated_[p], net_.parameters()[p].wants_gradient ? 1 : 0);
  }

 private:
  struct Content {
    int64_t paths = 0;
    WorkIndex masked_by{};
  };

  int64_t paths_from(TensorIndex tensor) {
    if (const auto known = paths_.find(tensor); known != paths_.end()) return known->second;
    const NodeIndex producer = net_.tensors()[tensor].producer;
    int64_t paths = net_.nodes()[producer].layer->type() == "EuclideanLoss" ? 1 : 0;
    for (NodeIndex n : indices(net_.nodes())) {
      const auto& node = net_.nodes()[n];
      for (size_t i = 0; i < node.inputs.size(); ++i)
        if (node.inputs[i] == tensor && node.propagate_down[i]) paths += paths_through(n);
    }
    return paths_[tensor] = paths;
  }
  int64_t paths_through(NodeIndex node) {
    return paths_from(net_.nodes()[node].outputs[0]) * (masks_.contains(node) ? 3 : 1);
  }
  int64_t paths_of_parameter(ParameterIndex parameter) {
    int64_t paths = 0;
    for (NodeIndex user : net_.parameters()[parameter].users) paths += paths_through(user);
    return paths;
  }
  int64_t sum_of(const std::vector<View>& views) const {
    int64_t sum = 0;
    for (const View& view : views) sum += held_.at(view.buffer).paths;
    return sum;
  }

  void take(const Step& step) {
    if (const auto* seed = step.as<steps::Seed>()) held_[step.writes[0].buffer] = {seed->weight != 0 ? 1 : 0};
    if (step.is<steps::Accumulate>()) held_[step.writes[0].buffer] = {sum_of(step.reads)};
    if (const auto* add = step.as<steps::AccumulateParameter>())
      gradients_[add->parameter] += sum_of(step.reads);
    if (step.runs(Pass::backward_weights) || step.runs(Pass::backward)) compute(step);
    if (const auto* update = step.as<steps::Update>()) {
      ++updated_[update->parameter];
      EXPECT_EQ(gradients_[update->parameter], paths_of_parameter(update->parameter));
    }
  }

  void compute(const Step& step) {
    const Work& work = program_.works[step.work()];
    if (work.facts.overwrites_output_gradients)
      for (const View& view : work.output_gradients) mask(held_.at(view.buffer), step.work());
    const int64_t paths = sum_of(work.output_gradients);
    EXPECT_EQ(paths, paths_through(work.nodes.back())) << name_of(work, net_);
    if (step.runs(Pass::backward_weights)) {
      for (size_t p = 0; p < work.parameters.size(); ++p) write_parameter(work, p, paths);
      return;
    }
    for (const View& view : work.input_gradients)
      if (view) held_[view.buffer] = {paths};
  }
  static void mask(Content& content, WorkIndex work) {
    if (content.masked_by != work) content.paths *= 3;
    content.masked_by = work;
  }
  void write_parameter(const Work& work, size_t p, int64_t paths) {
    const View& partial = work.partial_gradients[p];
    if (partial)
      held_[partial.buffer] = {paths};
    else
      gradients_[work.parameters[p]] = paths;
  }
  const Network& net_;
  const Program& program_;
  std::set<NodeIndex> masks_;  // whose output's gradient a kernel masks where it lies
  std::map<TensorIndex, int64_t> paths_;
  std::map<BufferIndex, Content> held_;
  std::map<ParameterIndex, int64_t> gradients_;
  std::map<ParameterIndex, int> updated_;  // how often
};

TEST(PlaceBackward, GradientsAreCompleteWhenTheyAreRead) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Network net = testing::random_net(seed);
    for (const bool fuse : {false, true}) {
      for (const bool keep : {false, true}) {
        SCOPED_TRACE(fmt::format("seed {}{}{}", seed, fuse ? ", fused" : "", keep ? ", kept" : ""));
        const Program program = with_backward(net, whole(net), {.fuse = fuse, .keep = keep});
        CountedPaths(net, program).run();
        if (HasFailure()) FAIL() << program.text(net);
      }
    }
  }
}

// With kept gradients no two tensors' gradients are in one buffer, save those that a sum passes through.
TEST(PlaceBackward, KeepsGradientsApart) {
  const Network net = NetBuilder().conv("a", "data").tanh("a", "b").conv("c", "b").loss("c", "data").build();
  const auto shared = [&](bool keep) {
    const Program program = with_backward(net, whole(net), {.keep = keep});
    return program.gradient_buffer(net.tensor("a")) == program.gradient_buffer(net.tensor("b"));
  };
  EXPECT_TRUE(shared(false));
  EXPECT_FALSE(shared(true));
}

// A fused kernel masks the gradient where it lies; where another layer reads it, too, it gets a copy.
TEST(PlaceBackward, CopiesASharedGradientThatAKernelMasks) {
  const auto accumulates = [](const NetBuilder& builder) {
    const Network net = builder.build();
    const Program program = with_backward(net, whole(net));
    return std::ranges::count_if(program.steps, [](const Step& s) { return s.is<steps::Accumulate>(); });
  };
  EXPECT_EQ(accumulates(NetBuilder().conv("a", "data").relu("a").conv("b", "a").loss("b", "data")), 0);
  // The sum passes one gradient to both convolutions; the first to come back copies it.
  EXPECT_EQ(accumulates(NetBuilder()
                            .conv("a", "data")
                            .relu("a")
                            .conv("b", "data")
                            .relu("b")
                            .sum("c", {"a", "b"})
                            .loss("c", "data")),
            1);
}

}  // namespace
}  // namespace cortado
