#include "cortado/net/network.h"

#include "cortado/net/declare_net.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

const std::string input =
    "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param {\n"
    " shape { dim: 4 dim: 3 } shape { dim: 4 } } }\n";

std::string ip(const std::string& name, const std::string& bottom, const std::string& more = "") {
  return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + name +
         "' inner_product_param { num_output: 3 } " + more + " }\n";
}
std::string relu(const std::string& name, const std::string& bottom, const std::string& top,
                 const std::string& more = "") {
  return "layer { name: '" + name + "' type: 'ReLU' bottom: '" + bottom + "' top: '" + top + "' " + more +
         " }\n";
}
std::string loss(const std::string& bottom) {
  return "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" + bottom + "' bottom: 'y' top: 'loss' }\n";
}

const Network::Node& node(const Network& network, const std::string& name) {
  return network.nodes().at(network.node(name));
}

// The rules of layers, along a net: bf16 from the first product to the loss.
TEST(NetworkPrecision, IsOfWhatLiesBetweenProductsAndLosses) {
  const std::string pool =
      "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' top: 'mask' pooling_param { kernel_size: 2 } "
      "}\n"
      "layer { name: 'quiet' type: 'Silence' bottom: 'mask' }\n";
  const Network f32 =
      load(
          "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param {\n"
          " shape { dim: 4 dim: 2 dim: 6 dim: 6 } shape { dim: 4 } } }\n" +
          relu("before", "x", "b") +
          "layer { name: 'c' type: 'Convolution' bottom: 'b' top: 'c' convolution_param { num_output: 2 "
          "kernel_size: 3 } }\n" +
          pool + relu("after", "p", "a") + ip("score", "a") + ip("unread", "a") + loss("score"))
          .network;
  const auto type = [](const Network& net, const std::string& blob) {
    return net.tensors()[net.tensor(blob)].type;
  };
  const Network net = f32.in(Precision::bf16);
  for (const char* blob : {"c", "p", "a", "score"}) EXPECT_EQ(type(net, blob), ElementType::bf16) << blob;
  for (const char* blob : {"x", "y", "b", "mask", "unread", "loss"})
    EXPECT_EQ(type(net, blob), ElementType::f32) << blob;
  const Network back = net.in(Precision::f32);
  for (const auto& tensor : back.tensors()) EXPECT_EQ(tensor.type, ElementType::f32) << tensor.name;
  for (const auto& parameter : net.parameters())
    EXPECT_EQ(parameter.type, ElementType::f32) << parameter.name;
}

TEST(NetworkPrecision, PolicySaysOfEachTypeOnceWhatIsBf16) {
  const Network net = load(input + ip("a", "x") + relu("r", "a", "a") + ip("b", "a") + loss("b")).network;
  std::vector<LayerPtr> layers;
  for (const Network::Node& node : net.nodes()) layers.push_back(node.layer);
  const std::vector<TypePrecision> policy = precision_policy(layers);
  std::vector<std::string> types;
  for (const TypePrecision& of : policy) types.push_back(of.type);
  EXPECT_EQ(types, (std::vector<std::string>{"Input", "InnerProduct", "ReLU", "SoftmaxWithLoss"}));
  EXPECT_EQ(policy[0].bf16, "");
  EXPECT_EQ(policy[0].f32, "outputs");
  EXPECT_NE(policy[1].bf16.find("weights as kernels read them"), std::string::npos) << policy[1].bf16;
  EXPECT_NE(policy[1].f32.find("weights, their gradients"), std::string::npos) << policy[1].f32;
  EXPECT_NE(policy[2].bf16.find("where the first input is"), std::string::npos) << policy[2].bf16;
  EXPECT_EQ(policy[2].f32, "");
  EXPECT_EQ(policy[3].bf16, "");
}

TEST(NetworkBuild, InPlaceTopsMakeNewTensors) {
  Network n = load(input + ip("a", "x") + relu("r", "a", "a") + loss("a")).network;
  ASSERT_EQ(n.tensors().size(), 5u);
  const Network::Node &a = node(n, "a"), &r = node(n, "r"), &l = node(n, "loss");
  EXPECT_EQ(r.inputs, a.outputs);
  EXPECT_NE(r.outputs, a.outputs);
  EXPECT_EQ(l.inputs[0], r.outputs[0]);
  EXPECT_EQ(n.tensor("a"), r.outputs[0]);
  EXPECT_FALSE(n.tensor("nowhere"));
}

TEST(NetworkBuild, ALayerBeforeAnInPlaceOneReadsTheOlderTensor) {
  Network n = load(input + ip("a", "x") + ip("b", "a") + relu("r", "a", "a") + ip("c", "a") +
                   "layer { name: 's' type: 'Eltwise' bottom: 'b' bottom: 'c' top: 's' }\n" + loss("s"))
                  .network;
  EXPECT_EQ(node(n, "b").inputs[0], node(n, "a").outputs[0]);
  EXPECT_EQ(node(n, "c").inputs[0], node(n, "r").outputs[0]);
  const Network::Tensor& shared = n.tensors()[node(n, "a").outputs[0]];
  EXPECT_EQ(shared.consumers, (std::vector{n.node("b"), n.node("r")}));
}

TEST(NetworkBuild, GradientsGoOnlyWhereLearnableParametersAre) {
  Network n = load(input + relu("r", "x", "r") + ip("a", "r") + ip("b", "a") + loss("b")).network;
  EXPECT_FALSE(node(n, "r").has_backward);
  EXPECT_EQ(node(n, "a").propagate_down, std::vector<bool>{false});
  EXPECT_TRUE(node(n, "a").has_backward);
  EXPECT_EQ(node(n, "b").propagate_down, std::vector<bool>{true});
  EXPECT_EQ(node(n, "loss").propagate_down, (std::vector<bool>{true, false}));
  EXPECT_FALSE(n.tensors()[n.tensor("x")].needs_gradient);
  EXPECT_FALSE(n.tensors()[n.tensor("y")].needs_gradient);
  EXPECT_FALSE(n.tensors()[n.tensor("r")].needs_gradient);
  EXPECT_TRUE(n.tensors()[n.tensor("a")].needs_gradient);
  EXPECT_TRUE(n.tensors()[n.tensor("loss")].needs_gradient);
}

TEST(NetworkBuild, FrozenLayersEndTheBackwardPass) {
  std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  Network n = load(input + ip("a", "x", frozen) + ip("b", "a") + loss("b")).network;
  EXPECT_FALSE(node(n, "a").has_backward);
  EXPECT_FALSE(node(n, "b").propagate_down[0]);
  EXPECT_FALSE(n.parameters()[ParameterIndex(0)].wants_gradient);
  EXPECT_TRUE(n.parameters()[ParameterIndex(2)].wants_gradient);
}

TEST(NetworkBuild, BranchesWithoutALossHaveNoBackward) {
  Network n = load(input + ip("a", "x") + ip("side", "a") + ip("b", "a") + loss("b")).network;
  EXPECT_FALSE(node(n, "side").has_backward);
  EXPECT_TRUE(node(n, "a").has_backward);
  EXPECT_EQ(n.outputs(), (std::vector{n.tensor("loss"), n.tensor("side")}));
}

// Caffe's: the blobs that are left in a set of names.
TEST(NetworkBuild, OutputsStandInOrderOfTheirNames) {
  auto names = [](const std::string& text) {
    const Network network = load(text).network;
    std::vector<std::string> names;
    for (TensorIndex output : network.outputs()) names.push_back(network.tensors()[output].name);
    return names;
  };
  EXPECT_EQ(names(input + ip("b", "x") + ip("a", "x") + ip("C", "x") + ip("a10", "x") + ip("a9", "x")),
            (std::vector<std::string>{"C", "a", "a10", "a9", "b", "y"}));
  // The top that Caffe adds to a loss layer without one is no output, nor can a layer read it.
  const std::string bare = "layer { name: 'l' type: 'EuclideanLoss' bottom: 'x' bottom: 'x' }";
  EXPECT_EQ(names(input + bare + ip("a", "x")), (std::vector<std::string>{"a", "y"}));
  EXPECT_NE(load_error(input + bare + ip("a", "l")).find("that no layer makes"), std::string::npos);
}

TEST(NetworkBuild, PropagateDownOverrules) {
  Network stopped =
      load(input + ip("a", "x") + relu("r", "a", "r", "propagate_down: false") + ip("b", "r") + loss("b"))
          .network;
  EXPECT_FALSE(node(stopped, "a").has_backward);
  EXPECT_FALSE(stopped.parameters()[ParameterIndex(0)].wants_gradient);
  Network forced = load(input + ip("a", "x", "propagate_down: true") + loss("a")).network;
  EXPECT_TRUE(node(forced, "a").propagate_down[0]);
  EXPECT_TRUE(forced.tensors()[forced.tensor("x")].needs_gradient);
  EXPECT_NE(load_error(input + ip("a", "x") +
                       "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'a' bottom: 'y' top: 'l'"
                       " propagate_down: true propagate_down: true }")
                .find("no gradient for bottom 'y'"),
            std::string::npos);
}

TEST(NetworkBuild, ForceBackwardReachesTheInput) {
  Network n = load("force_backward: true " + input + relu("r", "x", "r") + ip("a", "r") + loss("a")).network;
  EXPECT_TRUE(node(n, "r").propagate_down[0]);
  EXPECT_TRUE(n.tensors()[n.tensor("x")].needs_gradient);
  EXPECT_FALSE(n.tensors()[n.tensor("y")].needs_gradient);
}

TEST(NetworkBuild, TestingHasNoGradients) {
  Network n = load(input + ip("a", "x") + loss("a"), Phase::test).network;
  for (const Network::Node& each : n.nodes()) EXPECT_FALSE(each.has_backward);
}

TEST(NetworkBuild, ALayerKeepsThePhaseItNames) {
  const std::string net =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 } } }"
      "layer { name: 'a' type: 'Dropout' bottom: 'x' top: 'a' }"
      "layer { name: 'b' type: 'Dropout' bottom: 'a' top: 'b' phase: TEST }"
      "layer { name: 'c' type: 'Dropout' bottom: 'b' top: 'c' phase: TRAIN }";
  for (Phase phase : {Phase::train, Phase::test}) {
    const LoadedNetwork loaded = load(net, phase);
    const auto& nodes = loaded.network.nodes();
    EXPECT_EQ(nodes[NodeIndex(1)].phase, phase);
    EXPECT_EQ(nodes[NodeIndex(2)].phase, Phase::test);
    EXPECT_EQ(nodes[NodeIndex(3)].phase, Phase::train);
    EXPECT_EQ(loaded.net.layer(1).phase(), phase == Phase::train ? caffe::TRAIN : caffe::TEST);
    EXPECT_EQ(loaded.net.layer(3).phase(), caffe::TRAIN);
  }
}

TEST(NetworkBuild, StochasticPoolingOfTestingHasNoGradient) {
  const std::string net =
      "layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } } }"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 1 "
      "kernel_size: 1 } }"
      "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' phase: TEST pooling_param { pool: STOCHASTIC "
      "kernel_size: 2 stride: 2 } }"
      "layer { name: 'loss' type: 'Reduction' bottom: 'p' loss_weight: 1 top: 'l' }";
  EXPECT_EQ(
      load_error(net),
      "net.prototxt:1: layer 'p': stochastic pooling of phase TEST has no gradient; train it in phase TRAIN");
}

TEST(NetworkBuild, LossWeights) {
  Network n =
      load(input + ip("a", "x") + "layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'a' bottom: 'y' }")
          .network;
  EXPECT_EQ(node(n, "l").loss_weights, std::vector<double>{1});
  EXPECT_EQ(n.tensors().back().name, "l");
  Network weighted = load(input + ip("a", "x", "loss_weight: 0.25")).network;
  EXPECT_EQ(node(weighted, "a").loss_weights, std::vector<double>{0.25});
  EXPECT_TRUE(node(weighted, "a").has_backward);
  EXPECT_NE(
      load_error(input + ip("a", "x", "loss_weight: 1 loss_weight: 1")).find("2 loss_weight for 1 tops"),
      std::string::npos);
}

TEST(NetworkBuild, SharedParameters) {
  std::string w = "param { name: 'w' lr_mult: 2 } param { name: 'b' }",
              w2 = "param { name: 'w' } param { name: 'b' }";
  Network n = load(input + ip("a", "x", w) + ip("b", "a", w2) + loss("b")).network;
  ASSERT_EQ(n.parameters().size(), 2u);
  EXPECT_EQ(n.parameters()[ParameterIndex(0)].users, (std::vector{n.node("a"), n.node("b")}));
  EXPECT_EQ(n.parameters()[ParameterIndex(0)].declared_by, n.node("a"));
  EXPECT_EQ(n.parameters()[ParameterIndex(0)].lr_mult, 2);
  EXPECT_EQ(n.parameter_count(), 12);
}

TEST(NetworkBuild, SharedParametersMustFit) {
  std::string big =
      "layer { name: 'b' type: 'InnerProduct' bottom: 'x' top: 'b' param { name: 'w' MODE }"
      " inner_product_param { num_output: 9 } }";
  std::string owner =
      "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' }"
      " inner_product_param { num_output: 3 } }\n";
  auto with = [&](const std::string& mode) {
    return input + owner + std::string(big).replace(big.find("MODE"), 4, mode);
  };
  EXPECT_EQ(
      load_error(with("")),
      "net.prototxt:4: layer 'b' shares parameter 'w' of layer 'a' but needs the shape 9x3 instead of 3x3");
  EXPECT_NE(load_error(with("share_mode: PERMISSIVE")), "");
  std::string transposed =
      input +
      "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' }"
      " inner_product_param { num_output: 5 } }"
      "layer { name: 'b' type: 'InnerProduct' bottom: 'x' top: 'b' param { name: 'w' MODE }"
      " inner_product_param { num_output: 5 transpose: true } }";
  auto strict = transposed, permissive = transposed;
  strict.replace(strict.find("MODE"), 4, "");
  permissive.replace(permissive.find("MODE"), 4, "share_mode: PERMISSIVE");
  EXPECT_NE(load_error(strict), "");
  Network n = load(permissive).network;
  EXPECT_FALSE(n.parameters()[ParameterIndex(0)].one_shape);
  EXPECT_EQ(node(n, "a").parameter_shapes[0], (Shape{5, 3}));
  EXPECT_EQ(node(n, "b").parameter_shapes[0], (Shape{3, 5}));
}

TEST(NetworkErrors, UnknownBlobs) {
  EXPECT_EQ(load_error(input + ip("conv1", "x") + ip("a", "conv_1")),
            "net.prototxt:4: layer 'a' reads blob 'conv_1' that no layer makes; did you mean 'conv1'?");
}

TEST(NetworkErrors, CyclesAndWrongOrder) {
  EXPECT_EQ(
      load_error(input + "layer { name: 's' type: 'Eltwise' bottom: 'x' bottom: 'b' top: 's' }\n" +
                 ip("a", "s") + ip("b", "a")),
      "net.prototxt:3: layer 's' reads blob 'b' that only layer 'b' (line 5), which depends on 's', makes: "
      "the net is cyclic");
  EXPECT_EQ(
      load_error(input + ip("b", "a") + ip("a", "x")),
      "net.prototxt:3: layer 'b' reads blob 'a' before layer 'a' (line 4) makes it; move that layer up");
}

// In a network each node has its own name, "a#2" unless a layer of the file is named so.
TEST(NetworkBuild, LayersOfOneNameAreNodesOfSeveral) {
  LoadedNetwork loaded = load(input + ip("a", "x") + relu("a", "a", "b") + relu("a#2", "b", "c") +
                              "layer { name: 'a' type: 'InnerProduct' bottom: 'c' top: 'd'"
                              " inner_product_param { num_output: 2 } }\n");
  const Network& n = loaded.network;
  std::vector<std::string> names, file_names, parameters;
  for (const auto& node : n.nodes()) {
    names.push_back(node.name);
    file_names.push_back(node.file_name);
  }
  for (const auto& parameter : n.parameters()) parameters.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"in", "a", "a#3", "a#2", "a#4"}));
  EXPECT_EQ(file_names, (std::vector<std::string>{"in", "a", "a", "a#2", "a"}));
  EXPECT_EQ(parameters, (std::vector<std::string>{"a/weight", "a/bias", "a#4/weight", "a#4/bias"}));
  EXPECT_EQ(loaded.net.layer(4).name(), "a");
}

TEST(NetworkBuild, AParameterNamedLikeAnothersOwnIsAnother) {
  Network n = load(input + ip("a", "x") + ip("b", "a", "param { name: 'a/weight' }")).network;
  ASSERT_EQ(n.parameters().size(), 4u);
  EXPECT_EQ(n.parameters()[ParameterIndex(0)].name, "a/weight");
  EXPECT_NE(n.parameters()[ParameterIndex(2)].name, "a/weight");
}

TEST(NetworkBuild, PartsOfAConvolutionHaveItsParameters) {
  Network n = load(
                  "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param {\n"
                  " shape { dim: 4 dim: 3 dim: 5 dim: 5 } } }\n"
                  "layer { name: 'c' type: 'Convolution' bottom: 'x' bottom: 'y' top: 'a' top: 'b'\n"
                  " convolution_param { num_output: 2 kernel_size: 3 } }\n"
                  "layer { name: 'c#2' type: 'ReLU' bottom: 'b' top: 'r' }\n")
                  .network;
  ASSERT_EQ(n.nodes().size(), 4u);
  const Network::Node &first = n.nodes()[NodeIndex(1)], &second = n.nodes()[NodeIndex(2)];
  EXPECT_EQ(first.name, "c");
  EXPECT_EQ(second.name, "c#2'");
  EXPECT_EQ(second.part_of, "c");
  EXPECT_EQ(second.parameters, first.parameters);
  EXPECT_EQ(n.parameters()[ParameterIndex(0)].users, (std::vector{NodeIndex(1), NodeIndex(2)}));
}

TEST(NetworkErrors, ConvolutionsOfSeveralBottoms) {
  auto error = [](const std::string& tops, const std::string& options) {
    return load_error(
        "layer { name: 'in' type: 'Input' top: 'x' top: 'y' input_param {\n"
        " shape { dim: 4 dim: 3 dim: 5 dim: 5 } shape { dim: 4 dim: 3 dim: 5 dim: 6 } } }\n"
        "layer { name: 'c' type: 'Convolution' bottom: 'x' bottom: 'y' " +
        tops + " convolution_param { num_output: 2 kernel_size: 3 " + options + " } }\n");
  };
  EXPECT_NE(error("top: 'a'", "").find("2 bottoms and 1 tops"), std::string::npos);
  EXPECT_NE(error("top: 'a' top: 'b'", "").find("shapes 4x3x5x5 and 4x3x5x6; all must have one"),
            std::string::npos);
  EXPECT_NE(error("top: 'a' top: 'b' loss_weight: 1", "").find("1 loss_weight for 2 tops"),
            std::string::npos);
  EXPECT_NE(error("top: 'a' top: 'b'", "axis: 7").find("axis"), std::string::npos);
}

TEST(NetworkErrors, DuplicateBlobs) {
  EXPECT_EQ(
      load_error(input + ip("a", "x") + relu("r", "x", "a")),
      "net.prototxt:4: layer 'r' makes blob 'a', which layer 'a' (line 3) makes as well; name one otherwise");
}

TEST(NetworkErrors, ShapeMismatchesNameBothLayers) {
  std::string message = load_error(input + ip("a", "x") +
                                   "layer { name: 's' type: 'Eltwise' bottom: 'a' bottom: 'y' top: 's' }\n");
  EXPECT_EQ(message.find("net.prototxt:4: layer 's' (Eltwise): "), 0u) << message;
  EXPECT_NE(message.find("it reads 'a' of 4x3 (layer 'a', line 3), 'y' of 4 (layer 'in', line 1)"),
            std::string::npos)
      << message;
}

TEST(NetworkErrors, TooManyParamBlocksAndEmptyOrHugeTensors) {
  EXPECT_NE(load_error(input + relu("r", "x", "r", "param { lr_mult: 1 }")).find("1 param but 0"),
            std::string::npos);
  EXPECT_NE(
      load_error("layer { type: 'Input' top: 'x' input_param { shape { dim: 0 } } }").find("no elements"),
      std::string::npos);
  EXPECT_NE(load_error("layer { type: 'Input' top: 'x' input_param { shape { dim: 4000000000 dim: 4000000000 "
                       "dim: 4000000000 } } }"),
            "");
  EXPECT_NE(load_error("layer { type: 'Input' top: 'x' input_param { shape { dim: -1 } } }").find("negative"),
            std::string::npos);
}

}  // namespace
}  // namespace cortado
