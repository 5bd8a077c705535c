// Too much of something, and text that a terminal would obey: one line, exit code 2, in good time.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cortado/data/datum.h"
#include "cortado/data/lmdb.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class Limits : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }

  std::string error_of(const std::string& arguments, const std::string& prelude = "") {
    const CommandResult result = run_cortado(folder_.path(), arguments, prelude + " timeout 100 ");
    EXPECT_EQ(result.exit_code, 2) << result.output.substr(0, 10000);
    const size_t line = result.output.find("cortado: error: ");
    const std::string message = line == std::string::npos ? "" : result.output.substr(line);
    EXPECT_EQ(message.find('\n'), message.size() - 1) << "not one line: " << message.substr(0, 10000);
    EXPECT_LT(message.size(), 4000u) << message.substr(0, 10000);
    EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
    return message;
  }
  void expect_error(const std::string& arguments, const std::vector<std::string>& parts,
                    const std::string& prelude = "") {
    const std::string message = error_of(arguments, prelude);
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  void expect_net_error(const std::string& net, const std::vector<std::string>& parts) {
    folder_.write("net.prototxt", net);
    expect_error("show --model net.prototxt", parts);
  }

  const std::string train_ = "train -threads 1 -solver solver.prototxt";
  TemporaryFolder folder_;
};

// OpenBLAS, loaded with so little memory, tries to get more for ever.
TEST_F(Limits, AStartWithLittleAddressSpaceEnds) {
  const CommandResult result = run_cortado(folder_.path(), "--version", "ulimit -v 300000; timeout 60 ");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::string blas = " -kernels lowering-1";
  const CommandResult trained = run_cortado(folder_.path(), train_ + blas, "ulimit -v 400000; timeout 60 ");
  EXPECT_TRUE(trained.exit_code == 0 || trained.exit_code == 2) << trained.exit_code << trained.output;
}

TEST_F(Limits, ThreadsThatTheSystemDoesNotGive) {
  const std::string little = "ulimit -v 3000000;";
  expect_error("train -threads 2000 -solver solver.prototxt", {"of 2000 threads", "fewer threads"}, little);
  caffe::Datum datum = raw_datum(Image(2, 2, 1), 0);
  LmdbWriter writer(folder_.file("db"), false);
  writer.put("one", datum.SerializeAsString());
  writer.finish();
  folder_.write("net.prototxt", R"(
    layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'db' batch_size: 2 backend: LMDB } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { num_output: 2 } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' })");
  expect_error(train_ + " -reader-threads 2000", {"no more threads", "--reader-threads"}, little);
}

const std::string input_layer =
    "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { dim: 1 dim: 1 dim: 1 dim: 1 } } "
    "}\n";

// A few megabytes that would become gigabytes of messages.
TEST_F(Limits, CountsOfMessages) {
  std::string text, binary;
  for (int i = 0; i < 300'000; ++i) text += "layer{}", binary += std::string("\xa2\x06\0", 3);
  const std::string little = "ulimit -v 900000;";
  folder_.write("many.prototxt", text);
  expect_error("show --model many.prototxt", {"many.prototxt: has 300000 messages; more than 200000"},
               little);
  folder_.write("many.caffemodel", binary);
  expect_error(train_ + " --weights many.caffemodel", {"many.caffemodel: has 300000 messages"}, little);
  std::string layer;  // of that many blobs
  for (int i = 0; i < 16'000'000; ++i) layer += std::string("\x3a\0", 2);
  folder_.write("blobs.caffemodel", std::string("\xa2\x06\x80\x90\xa1\x0f") + layer);
  expect_error(train_ + " --weights blobs.caffemodel",
               {"blobs.caffemodel: has 16000001 messages; more than 200000"}, little);
}

TEST_F(Limits, NamesOfLayers) {
  const std::string huge(5 << 20, 'x');
  expect_net_error(input_layer + "layer { name: '" + huge + "' type: 'ReLU' bottom: 'data' top: 'relu' }",
                   {"net.prototxt:2: the name of a layer has 5242880 bytes"});
  expect_net_error(input_layer + "layer { name: 'a' type: '" + huge + "' bottom: 'data' top: 'relu' }",
                   {"net.prototxt:2: the name of a layer's type has 5242880 bytes"});
  expect_net_error(input_layer + "layer { name: 'a' type: 'ReLU' bottom: '" + huge + "' top: 'relu' }",
                   {"net.prototxt:2: the name of a blob has 5242880 bytes"});
  expect_net_error(input_layer + R"(layer { name: 'a\033[31m' type: 'ReLU' bottom: 'data' top: 'relu' })",
                   {R"(the name of a layer, 'a\x1b[31m', has control characters)"});
  expect_net_error(input_layer + "layer { " + huge + ": 1 }", {"net.prototxt:2:", "has no field named"});
}

// What parsers that call themselves for each level would not survive.
TEST_F(Limits, DeepAndHugeTexts) {
  auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  constexpr int depth = 100'000;
  const std::string lists = repeated("[", depth) + repeated("]", depth);
  const std::string begin = R"({"format": "cortado-strategy", "version": 1, "ranks": )";
  for (const std::string& strategy :
       {repeated("[", depth), lists, repeated("{\"a\":", depth) + "1" + repeated("}", depth),
        begin + "1, \"layers\": {\"*\": " + lists + "}}", begin + std::string(depth, '9') + "}",
        begin + "1e999, \"layers\": {}}"}) {
    folder_.write("deep.json", strategy);
    expect_error(train_ + " -strategy deep.json", {"deep.json"});
    expect_error("plan --model net.prototxt --machine deep.json", {"deep.json"});
  }
  expect_net_error("layer { loss_param { " + repeated("a { ", depth), {"net.prototxt:1:"});
  expect_net_error("layer { transform_param " + repeated("{", depth), {"net.prototxt:1:"});
}

TEST_F(Limits, KeysAndFileNamesAreShownAndNotObeyed) {
  LmdbWriter writer(folder_.file("db"), false);
  writer.put("key\x1b[31m\n", "no Datum");
  writer.finish();
  expect_error("data mean db mean.binaryproto", {R"(db key 'key\x1b[31m\n': not a Datum)"});
  expect_error("show --model 'no\x1b[2Jfile'", {R"(no\x1b[2Jfile)"});
}

}  // namespace
}  // namespace cortado
