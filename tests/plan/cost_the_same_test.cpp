#include "cortado/plan/cost_the_same.h"

#include <gtest/gtest.h>

#include "cortado/layers/layer_of.h"
#include "cortado/layers/source.h"
#include "cortado/net/build_network.h"

#include "tests/base/changed_field.h"

namespace cortado {

// Options of a layer that only this test knows.
struct ScratchOptions {
  int size = 1;
  double factor = 0.5;
  std::vector<int64_t> offsets;
  int start = 0;  // as a filler
  static constexpr auto fields =
      std::tuple{field("size", &ScratchOptions::size), field("factor", &ScratchOptions::factor),
                 field("offsets", &ScratchOptions::offsets), unkeyed_field("start", &ScratchOptions::start)};
};

namespace {

class ScratchLayer : public LayerOf<ScratchOptions> {
 public:
  explicit ScratchLayer(ScratchOptions options, std::string_view type = "Scratch")
      : LayerOf(std::move(options)), type_(type) {}
  std::string_view type() const override { return type_; }
  std::vector<Shape> output_shapes(std::span<const Shape> inputs, int) const override { return {inputs[0]}; }

 private:
  std::string_view type_;
};

// Whether two layers, each of its own input of that shape, are alike.
bool layers_cost_the_same(LayerPtr one, LayerPtr other, std::pair<Shape, Shape> shapes = {{2, 3}, {2, 3}}) {
  std::vector<LayerDeclaration> layers(3);
  layers[0].name = "in";
  layers[0].layer = std::make_shared<Source>(SourceOptions{.kind = SourceOptions::Kind::input});
  layers[0].tops = {"a", "b"};
  layers[1].name = "one", layers[1].layer = std::move(one), layers[1].bottoms = {"a"}, layers[1].tops = {"c"};
  layers[2].name = "two", layers[2].layer = std::move(other), layers[2].bottoms = {"b"},
  layers[2].tops = {"d"};
  const Network network = build_network("net", Phase::test, layers, [&](const LayerDeclaration&) {
    return std::vector<Shape>{shapes.first, shapes.second};
  });
  return plan::cost_the_same(network, {{network.node("one")}}, {{network.node("two")}});
}

TEST(CostTheSame, LayersOfOneTypeWithEqualFields) {
  const ScratchOptions options;
  const auto layer = [&](const ScratchOptions& of) { return std::make_shared<ScratchLayer>(of); };
  EXPECT_TRUE(layers_cost_the_same(layer(options), layer(options)));
  EXPECT_FALSE(layers_cost_the_same(layer(options), layer(options), {{2, 3}, {2, 4}}));
  EXPECT_FALSE(layers_cost_the_same(layer(options), std::make_shared<ScratchLayer>(options, "Other")));
  testing::with_each_field_changed(options, [&](auto name, bool in_key, const ScratchOptions& changed) {
    EXPECT_EQ(layers_cost_the_same(layer(options), layer(changed)), !in_key) << name;
  });
}

}  // namespace
}  // namespace cortado
