// Every net of the zoo loads in both forms and has its published number of learnable parameters.
#include <gtest/gtest.h>
#include <map>

#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"

namespace cortado {
namespace {

struct ZooModel {
  std::string name;
  int64_t parameters;
  std::vector<int64_t> scores;  // extents of one sample's output
};

void PrintTo(const ZooModel& model, std::ostream* out) { *out << model.name; }

const ZooModel zoo[] = {
    {"lenet", 431'080, {10}},
    {"cifar10_quick", 145'578, {10}},
    {"cifar10_full", 89'578, {10}},
    {"caffenet", 60'965'224, {1000}},
    {"alexnet", 61'100'840, {1000}},
    {"vgg-a", 132'863'336, {1000}},
    {"vgg-16", 138'357'544, {1000}},
    {"vgg-16-bn", 138'365'992, {1000}},
    {"vgg-128", 47'609'192, {1000}},
    {"vgg-256", 76'400'360, {1000}},
    {"vgg-512", 140'175'848, {1000}},
    {"googlenet", 13'378'280, {1000}},
    {"inception-v3", 23'834'568, {1000}},
    {"inception-v3-aux", 27'161'264, {1000}},
    {"resnet-18", 11'689'512, {1000}},
    {"resnet-50", 25'557'032, {1000}},
    {"wrn-50-2", 68'883'240, {1000}},
    {"wrn-50-4", 223'439'144, {1000}},
    {"resnext-50-32x4d", 25'028'904, {1000}},
    {"densenet-121", 7'978'856, {1000}},
    {"squeezenet-1.1", 1'235'496, {1000}},
    {"mobilenet-v2", 3'504'872, {1000}},
    {"mnasnet-1.0", 4'383'312, {1000}},
    {"resnet-20", 272'474, {10}},
    {"resnet-110", 1'730'714, {10}},
    {"efficientnet-b0", 5'288'548, {1000}},
    {"regnet-y-1.6gf", 11'202'430, {1000}},
    {"googlenet-bn", 6'624'904, {1000}},
    {"shufflenet-v2-x1.0", 2'278'604, {1000}},
    {"u-net", 31'037'698, {2, 256, 256}},
    {"u-net-3d", 5'601'187, {3, 64, 64, 64}},
};
// Learnable parameters of auxiliary heads, which deploy nets leave out.
const std::map<std::string, int64_t> auxiliary = {{"googlenet", 6'379'728}, {"inception-v3-aux", 3'326'696}};

Network load(const std::string& model, const std::string& file, Phase phase,
             const Network::SourceShapes& source_shapes) {
  std::string path = CORTADO_SOURCE_DIR "/models/" + model + "/" + file;
  return load_network(read_net(path), net_state(phase), source_shapes).network;
}

class Zoo : public testing::TestWithParam<ZooModel> {};

TEST_P(Zoo, DeployNetGivesTheScores) {
  Network network = load(GetParam().name, "deploy.prototxt", Phase::test, declared_source_shapes);
  const auto heads = auxiliary.find(GetParam().name);
  EXPECT_EQ(network.parameter_count(),
            GetParam().parameters - (heads == auxiliary.end() ? 0 : heads->second));
  Shape scores{1};
  for (int64_t extent : GetParam().scores) scores.append(extent);
  ASSERT_EQ(network.outputs().size(), 1u);
  EXPECT_EQ(network.tensors()[network.outputs()[0]].shape, scores);
}

TEST_P(Zoo, TrainingNetHasThePublishedParameters) {
  Network deploy = load(GetParam().name, "deploy.prototxt", Phase::test, declared_source_shapes);
  Shape data = deploy.tensors()[deploy.tensor("data")].shape;
  Shape label{1};
  if (GetParam().scores.size() > 1) {
    label = data;
    label.set(1, 1);
  }
  for (Phase phase : {Phase::train, Phase::test}) {
    Network network = load(GetParam().name, "train_val.prototxt", phase, [&](const LayerDeclaration&) {
      return std::vector{data, label};
    });
    EXPECT_EQ(network.parameter_count(), GetParam().parameters);
    EXPECT_TRUE(network.tensor("loss"));
    EXPECT_EQ(static_cast<bool>(network.tensor("accuracy")), phase == Phase::test);
  }
}

std::string zoo_name(const testing::TestParamInfo<ZooModel>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Zoo, testing::ValuesIn(zoo), zoo_name);

}  // namespace
}  // namespace cortado
