// place(): which rank has which part of what, and what moves.
#include "cortado/program/placement.h"

#include <set>

#include "tests/program/programs.h"

namespace cortado {
namespace {

using testing::all;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::NetBuilder;
using Kind = Placement::Operation::Kind;

// "source data", "copy for b", "a", "sum for a", ...
std::vector<std::string> operations_of(const Network& net, const Placement& placement) {
  std::vector<std::string> texts;
  for (const auto& operation : placement.operations) {
    const std::string node = operation.node ? net.nodes()[operation.node].name : "report";
    switch (operation.kind) {
      case Kind::source:
        texts.push_back("source " + node);
        break;
      case Kind::compute:
        texts.push_back(std::string(operation.layer->type()) + " " + node);
        break;
      case Kind::copy:
        texts.push_back("copy for " + node);
        break;
      case Kind::sum:
        texts.push_back("sum for " + node);
        break;
    }
  }
  return texts;
}

Network one_convolution() { return NetBuilder().conv("a", "data").loss("a", "data").build(); }

TEST(Place, OneRankHasAllAndMovesNothing) {
  const Network net = one_convolution();
  const Placement placement = place(net, testing::whole(net).strategies, 1);
  EXPECT_THAT(operations_of(net, placement),
              ElementsAre("source data", "Convolution a", "EuclideanLoss loss"));
  for (const auto& value : placement.values)
    EXPECT_EQ(value.layout[0], Box::whole(net.tensors()[value.tensor].shape)) << value.name;
}

// Partial sums without the bias, their sum where it is owned, and the bias there.
TEST(Place, ASummedDimensionIsSummedBeforeTheBias) {
  const Network net = one_convolution();
  NodeStrategies strategies = all(net, {.r = 2});
  strategies[net.node("loss")] = {};
  const Placement placement = place(net, strategies, 2);
  EXPECT_THAT(operations_of(net, placement),
              ElementsAre("source data", "copy for a", "Convolution a", "sum for a", "Bias a",
                          "copy for loss", "EuclideanLoss loss", "copy for report"));
  const auto& partial = placement.values[placement.operations[OperationIndex(2)].outputs[0]];
  EXPECT_TRUE(partial.partial);
  EXPECT_EQ(text(partial.layout), "0 [0,2)x[0,4)x[0,6)x[0,6), 1 [0,2)x[0,4)x[0,6)x[0,6)");
  const auto& owned = placement.values[placement.tensor_values[net.tensor("a")]];
  EXPECT_EQ(text(owned.layout), "0 [0,2)x[0,2)x[0,6)x[0,6), 1 [0,2)x[2,4)x[0,6)x[0,6)");
  EXPECT_EQ(text(placement.slices[ParameterIndex(0)]),
            "0 [0,4)x[0,2)x[0,3)x[0,3), 1 [0,4)x[2,4)x[0,3)x[0,3)");
  EXPECT_EQ(text(placement.slices[ParameterIndex(1)]), "0 [0,2), 1 [2,4)");  // of the bias
}

// The tile and the halo of the convolution, whose input needs no copy then.
TEST(Place, SourcesHoldOfEachRankWhatItsLayersRead) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("a", "b").build();
  const Placement placement = place(net, all(net, {.n = 2, .h = 2}), 4);
  const auto& data = placement.values[placement.tensor_values[net.tensor("data")]];
  EXPECT_EQ(text(data.layout),
            "0 [0,1)x[0,4)x[0,4)x[0,6), 1 [0,1)x[0,4)x[2,6)x[0,6), 2 [1,2)x[0,4)x[0,4)x[0,6), 3 "
            "[1,2)x[0,4)x[2,6)x[0,6)");
  EXPECT_EQ(operations_of(net, placement)[1], "Convolution a");
  for (size_t rank = 0; rank < 4; ++rank) {
    const BatchPart& part = placement.batches.at("data")[rank];
    EXPECT_EQ(part.tops[0], *data.layout[rank]);
    EXPECT_EQ(part.samples, (*data.layout[rank])[0]);
  }
}

// b and c need the same of a: it travels once.
TEST(Place, EqualNeedsShareACopy) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").conv("c", "a").loss("b", "c").build();
  NodeStrategies strategies = all(net, {.h = 2});
  const auto copies_of_a = [&] {
    int copies = 0;
    for (const auto& operation : place(net, strategies, 2).operations)
      if (operation.kind == Kind::copy && operation.node)
        copies += std::string("bc").find(net.nodes()[operation.node].name) != std::string::npos ? 1 : 0;
    return copies;
  };
  EXPECT_EQ(copies_of_a(), 1);
  strategies[net.node("c")] = testing::cut_by({.w = 2});
  EXPECT_EQ(copies_of_a(), 2);
}

TEST(Place, EveryRankHasTheLossesAndTheFirstTheOtherOutputs) {
  const Network net = NetBuilder().conv("a", "data").conv("b", "a").loss("a", "data").build();
  const Placement placement = place(net, all(net, {.n = 2}), 2);
  const auto reported = [&](const char* tensor) {
    const ValueIndex value = placement.report_values[net.tensor(tensor)];
    return value ? text(placement.values[value].layout) : "";
  };
  EXPECT_EQ(reported("loss"), "0 , 1 ");  // scalars
  EXPECT_EQ(reported("b"), "0 [0,2)x[0,4)x[0,6)x[0,6)");
  EXPECT_EQ(reported("a"), "");
}

TEST(Place, SumsWithinALayerGoOverRanksOfTheSameChannels) {
  const Network net = NetBuilder().conv("a", "data").tanh("a", "b").loss("b", "data").build();
  const Placement placement = place(net, all(net, {.n = 2, .c = 2}), 4);
  for (const auto& operation : placement.operations) {
    if (operation.node != net.node("b") || operation.kind != Kind::compute) continue;
    EXPECT_THAT(operation.groups[0].ranks(), ElementsAre(0, 2));
    EXPECT_THAT(operation.groups[3].ranks(), ElementsAre(1, 3));
  }
  const auto& loss = *std::ranges::find_if(placement.operations, [&](const auto& operation) {
    return operation.kind == Kind::compute && operation.node == net.node("loss");
  });
  EXPECT_THAT(loss.groups[2].ranks(), ElementsAre(0, 1, 2, 3));  // its output itself is a sum
}

TEST(Place, ReplicasHoldTheSameSlice) {
  const Network net = one_convolution();
  const Placement placement = place(net, all(net, {.n = 2, .c = 2}), 4);
  EXPECT_THAT(placement.replicas[ParameterIndex(0)][0].ranks(), ElementsAre(0, 2));
  EXPECT_THAT(placement.replicas[ParameterIndex(1)][3].ranks(), ElementsAre(1, 3));
  EXPECT_THAT(place(net, testing::whole(net).strategies, 2).replicas[ParameterIndex(0)][1].ranks(),
              ElementsAre());  // it has none
}

bool apart(const std::optional<Box>& one, const std::optional<Box>& other) {
  return !one || !other || one->intersect(*other).empty();
}

// Every element of a tensor that a layer makes has one owner.
void expect_owned_once(const Network& net, const Placement& placement) {
  for (TensorIndex t : indices(net.tensors())) {
    const auto& value = placement.values[placement.tensor_values[t]];
    if (placement.operations[value.producer].kind == Kind::source) continue;
    int64_t elements = 0;
    for (size_t rank = 0; rank < value.layout.size(); ++rank) {
      if (!value.layout[rank]) continue;
      elements += value.layout[rank]->shape().size();
      for (size_t other = 0; other < rank; ++other)
        EXPECT_TRUE(apart(value.layout[rank], value.layout[other])) << value.name;
    }
    EXPECT_EQ(elements, net.tensors()[t].shape.size()) << value.name;
  }
}

// What a rank reads lies with it, and each slice that its part needs is its own.
void expect_at_hand(const Placement& placement) {
  for (const auto& operation : placement.operations) {
    if (operation.kind != Kind::compute) continue;
    for (size_t rank = 0; rank < static_cast<size_t>(placement.ranks); ++rank) {
      for (size_t i = 0; i < operation.inputs.size(); ++i) {
        const auto& held = placement.values[operation.inputs[i]].layout[rank];
        const auto& read = operation.reads[i][rank];
        EXPECT_TRUE(!read || (held && held->contains(*read))) << placement.values[operation.inputs[i]].name;
      }
      for (size_t p = 0; p < operation.parameters.size() && operation.domain[rank]; ++p)
        EXPECT_EQ(operation.slices[p][rank], placement.slices[operation.parameters[p]][rank]);
    }
  }
}

// The slices of a parameter are all of it.
void expect_whole_parameters(const Network& net, const Placement& placement) {
  for (ParameterIndex p : indices(net.parameters())) {
    std::set<std::string> seen;
    int64_t elements = 0;
    for (const auto& slice : placement.slices[p])
      if (slice && seen.insert(slice->text()).second) elements += slice->shape().size();
    EXPECT_EQ(elements, net.parameters()[p].spec.shape.size()) << net.parameters()[p].name;
  }
}

TEST(Place, LawsHoldOnRandomNetsUnderRandomStrategies) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 8);
    SCOPED_TRACE(fmt::format("seed {}, {} ranks", seed, ranks));
    const Network net = testing::random_net(seed);
    const Placement placement =
        place(net, resolve(random_strategy(seed, net, ranks), net, ranks, "random"), ranks);
    expect_owned_once(net, placement);
    expect_at_hand(placement);
    expect_whole_parameters(net, placement);
    for (ValueIndex v : indices(placement.values))
      for (OperationIndex consumer : placement.values[v].consumers)
        EXPECT_THAT(placement.operations[consumer].inputs, ::testing::Contains(v));
  }
}

// A layer in f32 makes f32, and so does what keeps the type of its input, up to the next product.
TEST(Place, TypesFollowThePrecisionOfLayers) {
  const Network net = NetBuilder()
                          .conv("a", "data")
                          .tanh("a", "b")
                          .conv("c", "b")
                          .tanh("c", "d")
                          .loss("d", "data")
                          .build()
                          .in(Precision::bf16);
  NodeStrategies strategies = testing::whole(net).strategies;
  const auto types = [&] {
    const Placement placement = place(net, strategies, 1);
    std::string text;
    for (const char* blob : {"a", "b", "c", "d"})
      text += std::string(name_of(placement.values[placement.tensor_values[net.tensor(blob)]].type)) + " ";
    return text;
  };
  EXPECT_EQ(types(), "bf16 bf16 bf16 bf16 ");
  strategies[net.node("a")].precision = Precision::f32;
  EXPECT_EQ(types(), "f32 f32 bf16 bf16 ");
  strategies[net.node("d")].precision = Precision::f32;
  EXPECT_EQ(types(), "f32 f32 bf16 f32 ");
  strategies[net.node("c")].precision = Precision::bf16;
  EXPECT_EQ(types(), "f32 f32 bf16 f32 ");
}

}  // namespace
}  // namespace cortado
