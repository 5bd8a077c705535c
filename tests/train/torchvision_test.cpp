#include "cortado/train/torchvision.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

// Names by hand, from torchvision's sources. tests/end_to_end/torchvision_weights.py has torchvision itself.
namespace cortado {
namespace {

Network zoo_net(const std::string& name) {
  const NetFile file = read_net(fmt::format("{}/models/{}/deploy.prototxt", CORTADO_SOURCE_DIR, name));
  return load_network(file, net_state(Phase::test), declared_source_shapes).network;
}

std::string name_of(const Network& network, const std::string& parameter) {
  const TorchvisionNames names = torchvision_names(network);
  for (ParameterIndex p : indices(network.parameters()))
    if (network.parameters()[p].name == parameter) return names.of_parameter[p];
  return "there is no " + parameter;
}

TEST(Torchvision, CountsTheLayersOfASequence) {
  const Network alexnet = zoo_net("alexnet"), vgg = zoo_net("vgg-16-bn");
  EXPECT_EQ(name_of(alexnet, "conv1/weight"), "features.0.weight");
  EXPECT_EQ(name_of(alexnet, "conv5/bias"), "features.10.bias");
  EXPECT_EQ(name_of(alexnet, "fc6/weight"), "classifier.1.weight");
  EXPECT_EQ(name_of(alexnet, "fc8/weight"), "classifier.6.weight");
  EXPECT_EQ(name_of(vgg, "conv1_1/weight"), "features.0.weight");
  EXPECT_EQ(name_of(vgg, "conv1_1_scale/weight"), "features.1.weight");
  EXPECT_EQ(name_of(vgg, "conv5_3/weight"), "features.40.weight");
  EXPECT_EQ(name_of(vgg, "conv5_3_bn/variance"), "features.41.running_var");
  EXPECT_EQ(name_of(vgg, "conv5_3_scale/bias"), "features.41.bias");
  EXPECT_EQ(name_of(vgg, "conv5_3_bn/factor"), "");
  EXPECT_EQ(name_of(vgg, "fc7/bias"), "classifier.3.bias");
  EXPECT_EQ(name_of(zoo_net("vgg-16"), "conv5_3/weight"), "features.28.weight");
}

TEST(Torchvision, KnowsItsFamilies) {
  const std::map<std::string, std::string> families = {
      {"alexnet", "alexnet"},
      {"vgg-a", "vgg"},
      {"vgg-16", "vgg"},
      {"vgg-16-bn", "vgg"},
      {"resnet-18", "resnet"},
      {"resnet-50", "resnet"},
      {"wrn-50-2", "resnet"},
      {"wrn-50-4", "resnet"},
      {"resnext-50-32x4d", "resnet"},
      {"densenet-121", "densenet"},
      {"squeezenet-1.1", "squeezenet"},
      {"googlenet-bn", "googlenet"},
      {"inception-v3", "inception"},
      {"mobilenet-v2", "mobilenet_v2"},
      {"mnasnet-1.0", "mnasnet"},
      {"efficientnet-b0", "efficientnet"},
      {"regnet-y-1.6gf", "regnet"},
      {"shufflenet-v2-x1.0", "shufflenet_v2"},
  };
  for (const auto& [net, family] : families) EXPECT_EQ(torchvision_names(zoo_net(net)).family, family) << net;
  for (const char* other : {"lenet", "cifar10_quick", "googlenet", "u-net"})
    EXPECT_THROW(torchvision_names(zoo_net(other)), UserError) << other;
}

// Each tensor has a name of its own.
TEST(Torchvision, NamesDiffer) {
  for (const char* net :
       {"alexnet", "vgg-16-bn", "resnet-50", "densenet-121", "squeezenet-1.1", "googlenet-bn", "inception-v3",
        "mobilenet-v2", "mnasnet-1.0", "efficientnet-b0", "regnet-y-1.6gf", "shufflenet-v2-x1.0"}) {
    std::set<std::string> seen;
    for (const std::string& name : torchvision_names(zoo_net(net)).of_parameter)
      EXPECT_TRUE(name.empty() || seen.insert(name).second) << net << ": " << name;
  }
}

// A net of the names of resnet-18, small.
Network small_resnet() {
  return load_network(parse_net(R"(name: "small"
    layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 2 dim: 2 } } }
    layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
      convolution_param { num_output: 2 kernel_size: 1 bias_term: false } }
    layer { name: "conv1_bn" type: "BatchNorm" bottom: "conv1" top: "conv1" }
    layer { name: "conv1_scale" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
    layer { name: "fc" type: "InnerProduct" bottom: "conv1" top: "fc" inner_product_param { num_output: 1 } })",
                                "small.prototxt"),
                      net_state(Phase::test), declared_source_shapes)
      .network;
}

SafetensorsFile small_weights() {
  return {{{"conv1.weight", {2, 1, 1, 1}, {1, 2}},
           {"bn1.weight", {2}, {3, 4}},
           {"bn1.bias", {2}, {5, 6}},
           {"bn1.running_mean", {2}, {7, 8}},
           {"bn1.running_var", {2}, {9, 10}},
           {"fc.weight", {1, 8}, {0, 1, 2, 3, 4, 5, 6, 7}},
           {"fc.bias", {1}, {11}}},
          {}};
}

std::string refusal(const SafetensorsFile& file) {
  const Network network = small_resnet();
  try {
    from_torchvision(network, torchvision_names(network), file, "w.safetensors");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Torchvision, RoundTrips) {
  const Network network = small_resnet();
  const TorchvisionNames names = torchvision_names(network);
  FromTorchvision read = from_torchvision(network, names, small_weights(), "w.safetensors");
  const SafetensorsFile back = to_torchvision(network, names, read.values);
  EXPECT_EQ(back.tensors.size(), 7U);
  const SafetensorsFile weights = small_weights();
  for (const auto& tensor : weights.tensors) {
    ASSERT_NE(back.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(*back.find(tensor.name), tensor);
  }
  // Caffe keeps sums of statistics, and their factor.
  for (ParameterIndex p : indices(network.parameters()))
    if (network.parameters()[p].name == "conv1_bn/factor") read.values[p] = {4};
  EXPECT_EQ(to_torchvision(network, names, read.values).find("bn1.running_mean")->values,
            (std::vector<float>{1.75F, 2}));
}

TEST(Torchvision, RefusesWeightsOfAnotherNet) {
  SafetensorsFile file = small_weights();
  file.tensors[5].shape = {2, 4};
  EXPECT_EQ(refusal(file),
            "w.safetensors: tensor 'fc.weight' has the shape 2x4, parameter 'fc/weight' of net 'small' 1x8; "
            "give the "
            "weights of this net");
  file = small_weights();
  file.tensors.pop_back();
  EXPECT_EQ(refusal(file),
            "w.safetensors: has no tensor 'fc.bias' of float32, which is parameter 'fc/bias' of net 'small'");
  file = small_weights();
  file.tensors.push_back({"layer1.0.conv1.weight", {1}, {0}});
  EXPECT_EQ(refusal(file),
            "w.safetensors: tensor 'layer1.0.conv1.weight' is of no layer of net 'small'; give the weights "
            "of this net");
}

// PyTorch keeps counts of batches in 64-bit integers.
TEST(Torchvision, PassesOverCounts) {
  const std::string path = ::testing::TempDir() + "cortado_torchvision.safetensors";
  {
    std::ofstream stream(path, std::ios::binary);
    const std::string header =
        R"({"count":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"x":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
    const uint64_t size = header.size(), count = 5;
    const float x = 1.5F;
    stream.write(reinterpret_cast<const char*>(&size), sizeof size);
    stream << header;
    stream.write(reinterpret_cast<const char*>(&count), sizeof count);
    stream.write(reinterpret_cast<const char*>(&x), sizeof x);
  }
  const SafetensorsFile file = read_safetensors(path, OtherTypes::passed_over);
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0], (SafetensorsFile::Tensor{"x", {1}, {1.5F}}));
  EXPECT_THROW(read_safetensors(path), UserError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cortado
