// The pass "make works": which operations a rank has a part in, and which layers run as one.
#include <map>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/scale.h"

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using testing::cut_by;
using ::testing::ElementsAre;
using testing::NetBuilder;
using testing::whole;
using testing::with_works;

std::vector<std::string> names_of(const Network& net, const Program& program) {
  std::vector<std::string> names;
  for (const Work& work : program.works) names.push_back(name_of(work, net));
  return names;
}

// a, then batch normalization, scale and ReLU, each in place.
Network normalized() {
  return NetBuilder()
      .conv("a", "data")
      .declare("norm", std::make_shared<BatchNorm>(BatchNormOptions{}), {"a"}, {"a"})
      .declare("scale", std::make_shared<Scale>(ScaleOptions{}), {"a"}, {"a"})
      .declare("relu", std::make_shared<Pointwise>(ReluOptions{}), {"a"}, {"a"})
      .loss("a", "data")
      .build();
}

// Kernels that run chains of at most so many layers; notes how many layers each question was about.
TaskOracle at_most(size_t layers, std::vector<size_t>* asked = nullptr) {
  return [=](const Task& task) {
    if (asked) asked->push_back(task.layers.size());
    return task.layers.size() > layers ? std::nullopt : testing::facts_of(task);
  };
}

TEST(PlaceWorks, ShortensAChainUntilAKernelRunsIt) {
  const Network net = normalized();
  const auto placed = [&](size_t layers) {
    return names_of(net, with_works(net, whole(net), {.oracle = at_most(layers)}));
  };
  EXPECT_THAT(placed(3), ElementsAre("data", "a", "norm+scale+relu", "loss"));
  EXPECT_THAT(placed(2), ElementsAre("data", "a", "norm+scale", "relu", "loss"));
  EXPECT_THAT(placed(1), ElementsAre("data", "a", "norm", "scale", "relu", "loss"));
}

TEST(PlaceWorks, AsksForTheLongestChainFirst) {
  std::vector<size_t> asked;
  const Network net = normalized();
  with_works(net, whole(net), {.oracle = at_most(1, &asked)});
  EXPECT_THAT(asked, ElementsAre(1, 3, 2, 1, 2, 1, 1, 1));  // a, norm.., scale.., relu, loss
  asked.clear();
  with_works(net, whole(net), {.oracle = at_most(3, &asked), .fuse = false});
  EXPECT_THAT(asked, ElementsAre(1, 1, 1, 1, 1));
}

TEST(PlaceWorks, NeverLeavesOutALayer) {
  const Network net = NetBuilder().conv("a", "data").build();
  testing::expect_refused("refused a single layer",
                          [&] { with_works(net, whole(net), {.oracle = at_most(0)}); });
}

// The layers that are computed, where the last one is cut another way than the others.
std::string computed(const NetBuilder& builder, const Degrees& last) {
  const Network net = builder.build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies.back() = cut_by(last);
  std::string names;
  for (const Work& work : with_works(net, {strategies, 2}).works)
    if (work.kind == Work::Kind::compute) names += name_of(work, net) + " ";
  return names;
}

TEST(PlaceWorks, FusesOnlyWhatNothingComesBetween) {
  const NetBuilder pair = NetBuilder().conv("a", "data").relu("a");
  EXPECT_EQ(computed(pair, {.n = 2}), "a+relu_a2 ");
  EXPECT_EQ(computed(pair, {.h = 2}), "a relu_a2 ");  // a movement
  EXPECT_EQ(computed(NetBuilder().conv("a", "data").tanh("a", "b"), {.n = 2}), "a b ");
  const NetBuilder read_twice = NetBuilder()
                                    .conv("a", "data")
                                    .declare("r", std::make_shared<Pointwise>(ReluOptions{}), {"a"}, {"r"})
                                    .sum("c", {"a", "r"});
  EXPECT_EQ(computed(read_twice, {.n = 2}), "a r c ");
}

TEST(PlaceWorks, ARankHasOnlyWhatItTakesPartIn) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.h = 2});
  strategies[net.node("b")] = strategies[net.node("loss")] = {};  // on rank 0
  EXPECT_THAT(names_of(net, with_works(net, {strategies, 2, 0})),
              ElementsAre("data", "to a", "a", "to b", "b", "loss", "to report"));
  EXPECT_THAT(names_of(net, with_works(net, {strategies, 2, 1})),
              ElementsAre("data", "to a", "a", "to b", "to report"));
}

// Two bands of rows of a 3x3 convolution: three rows of six, and one more of the input.
TEST(PlaceWorks, ATaskIsTheRanksShareOfItsLayer) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  const Program program = with_works(net, {all(net, {.h = 2}), 2, 1});
  const auto work_of = [&](const std::string& name) {
    return *std::ranges::find_if(program.works, [&](const Work& w) { return name_of(w, net) == name; });
  };
  const Work b = work_of("b");
  EXPECT_EQ(b.task.output_boxes[0].text(), "[0,2)x[0,4)x[3,6)x[0,6)");
  EXPECT_EQ(b.task.input_boxes[0].text(), "[0,2)x[0,4)x[2,6)x[0,6)");
  EXPECT_EQ(b.task.inputs[0], (Shape{2, 4, 6, 6}));
  EXPECT_TRUE(b.task.cut);
  EXPECT_THAT(b.task.input_gradients, ElementsAre(true));
  EXPECT_THAT(b.parameters, ElementsAre(ParameterIndex(2), ParameterIndex(3)));
  EXPECT_THAT(work_of("a").task.input_gradients, ElementsAre(false));  // the data's
  EXPECT_FALSE(with_works(net, whole(net)).works[WorkIndex(1)].task.cut);
}

// The gradients of a layer that every replica computes whole are a work of their own.
TEST(PlaceWorks, WholeGradientsAreAWorkThatRunsOnlyBackward) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build();
  NodeStrategies strategies = all(net, {.n = 2});
  strategies[net.node("b")].sync = GradientSync::replicate;
  std::vector<std::string> backward_only;
  std::map<std::string, std::vector<bool>> gradients;  // per layer: those of the parameters
  for (const Work& work : with_works(net, {strategies, 2}).works) {
    if (work.backward_only) backward_only.push_back(name_of(work, net));
    gradients[name_of(work, net)] = work.task.parameter_gradients;
  }
  EXPECT_THAT(backward_only, ElementsAre("b of all", "to b of all"));
  EXPECT_THAT(gradients["b"], ElementsAre(false, false));
  EXPECT_THAT(gradients["b of all"], ElementsAre(true, true));
}

// Each operation that the rank computes a part of is in one work, and nobody else reads within a chain.
TEST(PlaceWorks, PlacesEveryOperationOnce) {
  testing::for_random_programs(60, [](const Network&, const Program& program, uint32_t) {
    IndexedVector<OperationIndex, int> times(program.placement->operations.size(), 0);
    for (const Work& work : program.works) {
      for (OperationIndex operation : work.operations) ++times[operation];
      for (size_t i = 0; i + 1 < work.operations.size(); ++i) {
        const auto& last = program.placement->operations[work.operations[i]];
        const auto& between = program.placement->values[last.outputs.at(0)];
        EXPECT_EQ(between.consumers, std::vector{work.operations[i + 1]});
      }
    }
    for (OperationIndex o : indices(times)) {
      const auto& operation = program.placement->operations[o];
      if (operation.kind != Placement::Operation::Kind::compute) continue;
      const bool here = operation.domain[static_cast<size_t>(program.rank)].has_value();
      EXPECT_EQ(times[o], here ? 1 : 0);
    }
  });
}

// Of a layer in f32 that reads bf16; where all is f32, tasks are those of a net of f32.
TEST(PlaceWorks, ProductsAreInF32WhereTheirLayerIs) {
  const Network net =
      NetBuilder().conv("a", "data").conv("b", "a").loss("b", "data").build().in(Precision::bf16);
  Cutting cutting = whole(net);
  const auto in_f32 = [&] {
    std::vector<std::string> names;
    for (const Work& work : with_works(net, cutting).works)
      if (work.is_layer() && work.task.f32_products) names.push_back(name_of(work, net));
    return names;
  };
  EXPECT_THAT(in_f32(), ElementsAre());
  cutting.strategies[net.node("b")].precision = Precision::f32;
  EXPECT_THAT(in_f32(), ElementsAre("b"));
  cutting.strategies[net.node("a")].precision = Precision::f32;
  EXPECT_THAT(in_f32(), ElementsAre());
}

}  // namespace
}  // namespace cortado
