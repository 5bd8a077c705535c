#include "cortado/apply/part_of_net.h"

#include <gtest/gtest.h>

#include "cortado/net/read_net.h"

#include "tests/apply/support.h"

namespace cortado {
namespace {

std::vector<std::string> layers_of(const PartOfNet& part) {
  std::vector<std::string> names;
  for (const caffe::LayerParameter& layer : part.file.net.layer()) names.push_back(layer.name());
  return names;
}

PartOfNet part(const std::vector<std::string>& blobs) {
  return part_of_net(branched_net(), net_state(Phase::test), blobs);
}

TEST(PartOfNet, KeepsWhatABlobNeeds) {
  EXPECT_EQ(layers_of(part({"prob"})), (std::vector<std::string>{"data", "conv", "relu", "score", "prob"}));
  // 'side' reads 'conv' before the in-place ReLU, which is after it.
  EXPECT_EQ(layers_of(part({"side"})), (std::vector<std::string>{"data", "conv", "side"}));
  EXPECT_EQ(part({"prob"}).outputs, std::vector<std::string>{"prob"});
}

TEST(PartOfNet, PutsOutACopyOfWhatOthersRead) {
  const PartOfNet both = part({"conv", "prob"});
  EXPECT_EQ(layers_of(both),
            (std::vector<std::string>{"data", "conv", "relu", "score", "prob", "conv (put out)"}));
  EXPECT_EQ(both.outputs, (std::vector<std::string>{"conv (put out)", "prob"}));
  // Alone, it is the last.
  EXPECT_EQ(layers_of(part({"conv"})), (std::vector<std::string>{"data", "conv", "relu"}));
  EXPECT_EQ(part({"conv"}).outputs, std::vector<std::string>{"conv"});
}

TEST(PartOfNet, PutsOutACopyOfWhatASourceBrings) {
  EXPECT_EQ(part({"data"}).outputs, std::vector<std::string>{"data (put out)"});
}

TEST(PartOfNet, ComputesInThePrecisionOfTheWholeNet) {
  NetFile net = branched_net();
  EXPECT_EQ(part_of_net(net, net_state(Phase::test), {"prob"}).file.precision, Precision::f32);
  net.precision = Precision::bf16;
  EXPECT_EQ(part_of_net(net, net_state(Phase::test), {"prob"}).file.precision, Precision::bf16);
}

TEST(PartOfNet, HasNoFillers) {
  const PartOfNet prob = part({"prob"});
  for (const caffe::LayerParameter& layer : prob.file.net.layer()) {
    EXPECT_FALSE(layer.convolution_param().has_weight_filler());
    EXPECT_FALSE(layer.inner_product_param().has_weight_filler());
    EXPECT_EQ(layer.convolution_param().num_output() > 0, layer.type() == "Convolution");
  }
}

TEST(PartOfNet, KeepsLinesAndNamesOfTheWholeNet) {
  const PartOfNet side = part({"side"});
  EXPECT_EQ(side.file.where(2).text(), "branched.prototxt:7");
  NetFile unnamed = parse_net(
      "layer { type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 } } }\n"
      "layer { type: 'ReLU' bottom: 'x' top: 'unused' }\n"
      "layer { type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 1 } }",
      "unnamed");
  EXPECT_EQ(layers_of(part_of_net(unnamed, net_state(Phase::test), {"y"})),
            (std::vector<std::string>{"Input0", "InnerProduct2"}));  // as its weights say
}

TEST(PartOfNet, NamesTheNearestBlob) {
  EXPECT_NE(error_of([] { part({"pron"}); }).find("did you mean 'prob'?"), std::string::npos);
}

TEST(NetOutputs, AreWhatNobodyReads) {
  EXPECT_EQ(net_outputs(branched_net(), net_state(Phase::test)), (std::vector<std::string>{"side", "prob"}));
}

TEST(ImageInput, IsTheOnlyInputOfFourAxes) {
  PartOfNet net = part({"prob"});
  ImageInput input = image_input_of(net.file);
  EXPECT_EQ(input.layer, "data");
  EXPECT_EQ((std::vector<int>{input.batch, input.channels, input.height, input.width}),
            (std::vector<int>{3, 3, 4, 5}));
  set_input_batch(net.file, "data", 7);
  EXPECT_EQ(image_input_of(net.file).batch, 7);
}

TEST(ImageInput, RefusesOthersWithARemedy) {
  auto refusal = [](const std::string& layers) {
    const NetFile file = parse_net(layers, "net");
    return error_of([&] { image_input_of(file); });
  };
  EXPECT_NE(refusal("layer { name: 'd' type: 'Data' top: 'data' top: 'label' }").find("deploy net"),
            std::string::npos);
  EXPECT_NE(refusal("layer { name: 'd' type: 'Input' top: 'data' input_param { shape { dim: 3 dim: 2 } } }")
                .find("the shape 3x2"),
            std::string::npos);
  EXPECT_NE(refusal("layer { name: 'd' type: 'Input' top: 'data' }").find("four axes"), std::string::npos);
  const std::string input =
      "layer { name: 'd' type: 'Input' top: 'a' input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }";
  EXPECT_NE(refusal(input + input).find("only input"), std::string::npos);
}

}  // namespace
}  // namespace cortado
