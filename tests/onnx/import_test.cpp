// What is refused, and how: files may hold anything. Values are compared with PyTorch in
// operators_as_pytorch.py.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <regex>
#include <set>

#include "cortado/base/file.h"
#include "cortado/net/read_net.h"
#include "cortado/onnx/read/fold.h"
#include "cortado/onnx/read/operators.h"

#include "tests/onnx/models.h"

namespace cortado::testing {
namespace {

using onnx::TensorProto;

ModelBuilder relu_model() {
  ModelBuilder builder;
  builder.input("x", {2, 3, 4, 4}).output("y");
  builder.node("Relu", {"x"}, {"y"});
  return builder;
}

// The operators that a part of docs/reference/onnx.md names.
std::set<std::string> named_in_docs(const std::string& begin, const std::string& end) {
  const std::string page = read_file(CORTADO_SOURCE_DIR "/docs/reference/onnx.md");
  const size_t from = page.find(begin);
  const std::string text = page.substr(from, page.find(end, from) - from);
  std::set<std::string> names;
  const std::regex name("`([A-Z][A-Za-z0-9]+)`");
  for (std::sregex_iterator at(text.begin(), text.end(), name), last; at != last; ++at)
    names.insert((*at)[1]);
  return names;
}

TEST(ImportOnnx, DocsNameEveryOperator) {
  std::set<std::string> known{"Constant"};
  for (const std::string_view name : onnx::read_operators()) known.emplace(name);
  for (const std::string_view name : onnx::folded_operators()) known.emplace(name);
  EXPECT_EQ(named_in_docs("| operator |", "A number of windows"), known);
  const std::set<std::string> refused = named_in_docs("### What is left out", "## What is written");
  const std::vector<std::string_view> all = onnx::refused_operators();
  for (const std::string& name : refused) EXPECT_TRUE(std::ranges::find(all, name) != all.end()) << name;
}

TEST(ImportOnnx, NamesOfLayersAreThoseOfWeights) {
  ModelBuilder builder;
  builder.input("x", {2, 1, 3, 3}).output("y");
  builder.floats("layer1.0.conv1.weight", {1, 1, 1, 1}, {2});
  builder.node("Conv", {"x", "layer1.0.conv1.weight"}, {"a"});
  builder.node("Relu", {"a"}, {"y"}).set_name("/layer1/relu/Relu_3");
  const onnx::ImportedNet imported = builder.read();
  EXPECT_EQ(imported.net.layer(1).name(), "layer1.0.conv1");
  EXPECT_EQ(imported.net.layer(2).name(), "layer1/relu");
  EXPECT_EQ(imported.net.layer(2).top(0), "y");
}

TEST(ImportOnnx, UnreadNodesMakeNoLayer) {
  ModelBuilder builder = relu_model();
  builder.node("Erf", {"x"}, {"z"});
  EXPECT_EQ(builder.read().net.layer_size(), 2);
}

TEST(ImportOnnx, OpsetsThatAreRead) {
  ModelBuilder builder = relu_model();
  for (const int version : {12, 19}) {
    builder.model.mutable_opset_import(0)->set_version(version);
    EXPECT_NE(builder.error().find("model.onnx: is of opset " + std::to_string(version) + "; opset 13 to 18"),
              std::string::npos);
  }
  builder.model.clear_opset_import();
  EXPECT_EQ(builder.error(), "model.onnx: names no opset; is it an ONNX model?");
}

TEST(ImportOnnx, UnknownOperatorsAreNamed) {
  ModelBuilder builder = relu_model();
  builder.graph().mutable_node(0)->set_op_type("Reluu");
  EXPECT_EQ(builder.error(),
            "model.onnx: node 'Relu_1' (Reluu): this operator is not read; did you mean 'Relu'?; "
            "docs/reference/onnx.md lists those that are");
  builder.graph().mutable_node(0)->set_op_type("LSTM");
  EXPECT_EQ(builder.error(),
            "model.onnx: node 'Relu_1' (LSTM): this operator is not read: recurrent operators are not read; "
            "give a net with "
            "LSTM or RNN layers as a prototxt");
  builder.graph().mutable_node(0)->set_op_type("Relu");
  builder.graph().mutable_node(0)->set_domain("com.example");
  EXPECT_NE(builder.error().find("domain 'com.example'"), std::string::npos);
}

TEST(ImportOnnx, UnknownAttributesAreRefused) {
  ModelBuilder builder = relu_model();
  ModelBuilder::attribute(*builder.graph().mutable_node(0), "strength", 3);
  EXPECT_NE(builder.error().find("attribute 'strength' is not one of this operator"), std::string::npos);
}

TEST(ImportOnnx, AttributesOfWrongTypesAreRefused) {
  ModelBuilder builder = relu_model();
  builder.graph().mutable_node(0)->set_op_type("LeakyRelu");
  ModelBuilder::attribute(*builder.graph().mutable_node(0), "alpha", 3);
  EXPECT_NE(builder.error().find("attribute alpha is of type INT, not FLOAT"), std::string::npos);
}

TEST(ImportOnnx, CyclesAndMissingValuesAreRefused) {
  ModelBuilder builder;
  builder.input("x", {2, 3}).output("y");
  builder.node("Add", {"x", "z"}, {"y"});
  builder.node("Relu", {"y"}, {"z"});
  EXPECT_NE(builder.error().find("node 'Add_1' (Add): reads 'z', which is no input"), std::string::npos);
  ModelBuilder twice = relu_model();
  twice.node("Sigmoid", {"x"}, {"y"});
  EXPECT_NE(twice.error().find("value 'y' is made twice"), std::string::npos);
  ModelBuilder initialized;
  initialized.input("x", {2, 3}).output("y").floats("z", {2, 3}, std::vector<float>(6, 1));
  initialized.node("Relu", {"x"}, {"z"});
  initialized.node("Add", {"x", "z"}, {"y"});
  EXPECT_NE(initialized.error().find("value 'z' is made twice"), std::string::npos);
  ModelBuilder none = relu_model();
  none.graph().clear_output();
  EXPECT_NE(none.error().find("has no outputs"), std::string::npos);
  none.output("nowhere");
  EXPECT_FALSE(none.error().empty());
  ModelBuilder empty = relu_model();
  empty.graph().mutable_node(0)->clear_input();
  EXPECT_FALSE(empty.error().empty());
}

TEST(ImportOnnx, OpenShapesNeedTheUsers) {
  ModelBuilder builder;
  builder.input("x", {0, 3, 0, 0}).output("y");
  builder.node("Relu", {"x"}, {"y"});
  EXPECT_NE(
      builder.error().find("input 'x': leaves axis 2 open ('N'); give an input shape, that of a sample"),
      std::string::npos);
  const onnx::ImportedNet imported = builder.read({.batch = 4, .input_shapes = [](size_t) {
                                                     return std::vector<Shape>{{4, 3, 5, 6}};
                                                   }});
  EXPECT_EQ(imported.net.layer(0).input_param().shape(0).dim(3), 6);
  ModelBuilder integers;
  integers.input("x", {2, 3}, TensorProto::INT64).output("y");
  integers.node("Relu", {"x"}, {"y"});
  EXPECT_NE(integers.error().find("input 'x': is of type INT64"), std::string::npos);
}

TEST(ImportOnnx, SizesOfInitializersMustAgree) {
  ModelBuilder builder;
  builder.input("x", {2, 3}).output("y");
  builder.floats("w", {3, 4}, {1, 2, 3});
  builder.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_NE(builder.error().find("initializer 'w' has 3 values for its 12 elements"), std::string::npos);
  TensorProto& tensor = *builder.graph().mutable_initializer(0);
  tensor.set_raw_data("abcdef");
  EXPECT_NE(builder.error().find("has 6 bytes for 12 values of 4 bytes"), std::string::npos);
  tensor.set_dims(0, int64_t{1} << 62);
  EXPECT_FALSE(builder.error().empty());
  tensor.set_dims(0, -3);
  EXPECT_FALSE(builder.error().empty());
  tensor.set_data_type(TensorProto::STRING);
  EXPECT_FALSE(builder.error().empty());
}

TEST(ImportOnnx, ExternalDataStayInTheModelsFolder) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.file("model"));
  const float values[] = {1, 2, 3};
  std::ofstream(folder.file("model/w.bin"), std::ios::binary)
      .write(reinterpret_cast<const char*>(values), 12);
  std::ofstream(folder.file("secret.bin"), std::ios::binary).write(reinterpret_cast<const char*>(values), 12);
  std::filesystem::create_symlink(folder.file("secret.bin"), folder.file("model/link.bin"));
  ModelBuilder builder;
  builder.input("x", {2, 3}).output("y");
  TensorProto& tensor = builder.floats("w", {3, 1}, {});
  tensor.set_data_location(TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& location = *tensor.add_external_data();
  location.set_key("location");
  builder.node("MatMul", {"x", "w"}, {"y"});
  const onnx::ImportOptions options{.folder = folder.file("model")};
  const auto error_at = [&](const std::string& path) {
    location.set_value(path);
    return builder.error(options);
  };
  EXPECT_EQ(error_at("w.bin"), "");
  EXPECT_EQ(builder.read(options).weights.at(0).blobs.at(0).values, (std::vector<float>{1, 2, 3}));
  for (const std::string path : {"../secret.bin", "link.bin", "sub/../../secret.bin", "/etc/passwd", ""})
    EXPECT_NE(error_at(path).find("outside the model's folder"), std::string::npos) << path;
  EXPECT_NE(error_at("none.bin").find("which is no file"), std::string::npos);
  EXPECT_NE(error_at(".").find("which is no file"), std::string::npos);
  location.set_value("w.bin");
  onnx::StringStringEntryProto& offset = *tensor.add_external_data();
  offset.set_key("offset");
  for (const std::string bytes : {"4", "13", "18446744073709551615", "-1", "x"}) {
    offset.set_value(bytes);
    EXPECT_FALSE(builder.error(options).empty()) << bytes;
  }
}

TEST(ImportOnnx, ConstantsHaveALimit) {
  ModelBuilder builder;
  builder.input("x", {2, 3}).output("y");
  builder.integers("s", {int64_t{1} << 40, 1 << 20});
  builder.node("ConstantOfShape", {"s"}, {"c"});
  builder.node("Add", {"x", "c"}, {"y"});
  EXPECT_NE(builder.error().find("node 'ConstantOfShape_1'"), std::string::npos);
}

TEST(ImportOnnx, WeightsMustBeFinite) {
  ModelBuilder builder;
  builder.input("x", {2, 1}).output("y");
  builder.floats("w", {1, 1}, {std::numeric_limits<float>::quiet_NaN()});
  builder.node("MatMul", {"x", "w"}, {"y"});
  EXPECT_NE(builder.error().find("has the value nan"), std::string::npos);
}

TEST(ImportOnnx, WeightsOfSeveralLayersAreCopied) {
  ModelBuilder builder;
  builder.input("x", {2, 2}).output("y");
  builder.floats("w", {2, 2}, {1, 2, 3, 4});
  builder.node("MatMul", {"x", "w"}, {"a"});
  builder.node("MatMul", {"a", "w"}, {"y"});
  const onnx::ImportedNet imported = builder.read();
  EXPECT_EQ(imported.weights.size(), 2u);
  ASSERT_EQ(imported.notices.size(), 1u);
  EXPECT_NE(imported.notices[0].find("weight 'w' is used by 2 nodes"), std::string::npos);
}

TEST(ImportOnnx, LossesComeWithData) {
  ModelBuilder builder;
  builder.input("x", {4, 3, 2, 2}).output("y");
  builder.floats("w", {12, 5}, std::vector<float>(60, 0.5f));
  builder.node("Flatten", {"x"}, {"f"});
  builder.node("MatMul", {"f", "w"}, {"s"});
  ModelBuilder::attribute(builder.node("Softmax", {"s"}, {"y"}), "axis", 1);
  const caffe::NetParameter net = onnx::with_loss(builder.read().net, "model.onnx");
  const NetFile file = net_of_message(net, "net");
  const auto shapes = [](const LayerDeclaration&) { return std::vector<Shape>{{4, 3, 2, 2}, {4}}; };
  const Network network = load_network(file, net_state(Phase::train), shapes).network;
  EXPECT_EQ(network.nodes().back().layer->type(), "SoftmaxWithLoss");
  EXPECT_EQ(network.node("Softmax_1"), NodeIndex());
  EXPECT_EQ(load_network(file, net_state(Phase::test), shapes).network.nodes().back().layer->type(),
            "Accuracy");
}

// One of most kinds of nodes.
onnx::ModelProto large_model() {
  ModelBuilder builder;
  builder.input("x", {2, 4, 8, 8}).output("y").output("z");
  builder.floats("w", {6, 2, 3, 3}, std::vector<float>(108, 0.1f));
  builder.floats("c", {6}, std::vector<float>(6, 0.5f));
  builder.floats("v", {72, 5}, std::vector<float>(360, 0.2f));
  builder.floats("s", {4}, {1, 1, 2, 2});
  builder.integers("p", {0, 0, 1, 1, 0, 0, 0, 1});
  builder.integers("minus", {-1});
  builder.integers("zero", {0});
  builder.node("Pad", {"x", "p"}, {"a"});
  ModelBuilder::attribute(builder.node("Conv", {"a", "w", "c"}, {"b"}), "group", 2);
  builder.node("BatchNormalization", {"b", "c", "c", "c", "c"}, {"d"});
  builder.node("Relu", {"d"}, {"e"});
  onnx::NodeProto& pool = builder.node("AveragePool", {"e"}, {"f"});
  for (const std::string name : {"kernel_shape", "strides"}) {
    onnx::AttributeProto& attribute = *pool.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.add_ints(3);
    attribute.add_ints(2);
  }
  ModelBuilder::attribute(pool, "ceil_mode", 1);
  builder.node("Resize", {"f", "", "s"}, {"z"});
  builder.node("Shape", {"f"}, {"h"});
  builder.node("Gather", {"h", "zero"}, {"i"});
  ModelBuilder::attribute(builder.node("Concat", {"i", "minus"}, {"j"}), "axis", 0);
  builder.node("Reshape", {"f", "j"}, {"k"});
  builder.node("MatMul", {"k", "v"}, {"l"});
  builder.node("Mul", {"l", "l"}, {"m"});
  ModelBuilder::attribute(builder.node("Softmax", {"m"}, {"y"}), "axis", 1);
  return builder.model;
}

TEST(ImportOnnx, ChangedBytesGiveANetOrAnError) {
  ASSERT_EQ(error_of([] { onnx::import_model(large_model(), "model.onnx"); }), "");
  const std::string sound = large_model().SerializeAsString();
  std::mt19937 random(11);
  const auto below = [&](size_t count) { return random() % count; };
  int read = 0, refused = 0;
  constexpr int rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = sound;
    for (size_t changes = 1 + below(3); changes > 0; --changes) {
      // Most bytes are weights: the structure is what matters.
      const size_t at = below(2) ? below(bytes.size()) : bytes.size() - 1 - below(bytes.size() / 3);
      bytes[at] =
          below(2) ? static_cast<char>(below(256)) : static_cast<char>(bytes[at] + (below(2) ? 1 : -1));
    }
    onnx::ModelProto model;
    if (!model.ParseFromString(bytes)) continue;
    const std::string error = error_of([&] { onnx::import_model(model, "model.onnx"); });
    ++(error.empty() ? read : refused);
  }
  EXPECT_GT(read, rounds / 20);
  EXPECT_GT(refused, rounds / 20);
}

TEST(ImportOnnx, FilesOfOtherKindsAreRefused) {
  const ScratchFolder folder;
  write_file_atomically(folder.file("a.onnx"), "name: \"net\"");
  EXPECT_FALSE(error_of([&] { onnx::read_model(folder.file("a.onnx")); }).empty());
  write_file_atomically(folder.file("b.onnx"), "");
  EXPECT_NE(error_of([&] { onnx::read_model(folder.file("b.onnx")); }).find("has no graph"),
            std::string::npos);
  EXPECT_FALSE(error_of([&] { onnx::read_model(folder.file("none.onnx")); }).empty());
}

}  // namespace
}  // namespace cortado::testing
