#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

// Wrong input of every kind: one clear line, exit code 2, nothing half-written.
class Errors : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }

  // The small net with one text in place of another.
  void write_net_with(const std::string& old_text, const std::string& new_text) {
    std::string net = small_net();
    size_t at = net.find(old_text);
    ASSERT_NE(at, std::string::npos) << old_text;
    folder_.write("net.prototxt", net.replace(at, old_text.size(), new_text));
  }

  void expect_error(const std::string& arguments, const std::vector<std::string>& parts,
                    const std::string& prelude = "") {
    CommandResult result = run_cortado(folder_.path(), arguments, prelude);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    size_t line = result.output.find("cortado: error: ");
    ASSERT_NE(line, std::string::npos) << result.output;
    std::string message = result.output.substr(line);
    EXPECT_EQ(message.find('\n'), message.size() - 1) << "more than a line: " << message;
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    EXPECT_EQ(folder_.count(".tmp"), 0) << "a temporary file stayed";
  }

  const std::string train_ = "train -threads 1 -solver solver.prototxt";
  TemporaryFolder folder_;
};

TEST_F(Errors, MissingFiles) {
  expect_error("train -solver none.prototxt", {"none.prototxt", "No such file"});
  folder_.write("solver.prototxt", small_solver("test_net: 'other.prototxt' test_iter: 1"));
  expect_error(train_, {"other.prototxt", "No such file"});
  SetUp();
  expect_error(train_ + " -weights none.caffemodel", {"none.caffemodel", "No such file"});
  expect_error(train_ + " -snapshot none.solverstate", {"none.solverstate", "No such file"});
  expect_error(train_ + " -snapshot none.safetensors", {"none.safetensors", "No such file"});
  expect_error(train_ + " --set snapshot_prefix=nowhere/small", {"snapshot_prefix", "nowhere"});
}

TEST_F(Errors, WrongFieldNamesLine) {
  folder_.write("solver.prototxt", small_solver("base_rate: 1"));
  expect_error(train_, {"solver.prototxt:3", "base_rate"});
  SetUp();
  write_net_with("kernel_size: 3", "kernel_sise: 3");
  expect_error(train_, {"net.prototxt:7:", "kernel_sise"});
}

TEST_F(Errors, ShapeMismatchNamesTheLayer) {
  write_net_with("kernel_size: 3", "kernel_size: 9");
  expect_error(train_, {"net.prototxt", "conv", "9"});
}

TEST_F(Errors, UnknownLayerTypeNamesTheLine) {
  write_net_with("\"Convolution\"", "\"Convolutoin\"");
  expect_error(train_, {"net.prototxt:6:", "Convolutoin"});
}

TEST_F(Errors, CyclesAreRefused) {
  write_net_with("bottom: \"data\" top: \"conv\"", "bottom: \"score\" top: \"conv\"");
  expect_error(train_, {"net.prototxt", "score"});
}

TEST_F(Errors, WeightsOfAnotherNet) {
  ASSERT_EQ(run_cortado(folder_.path(), train_).exit_code, 0);
  write_net_with("num_output: 4", "num_output: 5");
  expect_error(train_ + " -weights small_iter_20.caffemodel",
               {"small_iter_20.caffemodel", "conv", "4x2x3x3", "5x2x3x3"});
  expect_error(train_ + " -snapshot small_iter_20.solverstate", {"small_iter_20"});
  std::string net = small_net();
  for (const char* name : {"\"conv\" type", "\"score\" type"}) net.insert(net.find(name) + 1, "other_");
  folder_.write("net.prototxt", net);
  expect_error(train_ + " -weights small_iter_20.caffemodel", {"small_iter_20.caffemodel", "another net"});
}

TEST_F(Errors, TruncatedSnapshots) {
  for (const char* format : {"cortado", "caffe", "hdf5"}) {
    ASSERT_EQ(run_cortado(folder_.path(), train_ + " --snapshot-format " + format).exit_code, 0);
  }
  for (std::string name :
       {"small_iter_20.safetensors", "small_iter_20.solverstate", "small_iter_20.solverstate.h5"}) {
    std::filesystem::resize_file(folder_.file(name), std::filesystem::file_size(folder_.file(name)) / 2);
    expect_error(train_ + " -snapshot " + name, {name});
  }
}

TEST_F(Errors, ASnapshotOfAnotherSolver) {
  ASSERT_EQ(run_cortado(folder_.path(), train_ + " --snapshot-format cortado").exit_code, 0);
  expect_error(train_ + " --set type=Adam -snapshot small_iter_20.safetensors", {"solver SGD", "uses Adam"});
}

// A file-size limit stands for a full disk: writing fails in the middle, with SIGXFSZ ignored as EFBIG.
TEST_F(Errors, FullDiskWhileSnapshotting) {
  write_net_with("num_output: 3", "num_output: 3000");
  for (std::string format : {"cortado", "caffe", "hdf5"}) {
    expect_error(train_ + " --set max_iter=2 --snapshot-format " + format, {"small_iter_2"},
                 "ulimit -f 64; trap '' XFSZ;");
    EXPECT_EQ(folder_.count("small_iter"), 0) << format;
  }
}

TEST_F(Errors, AFullDiskKeepsTheFormerSnapshot) {
  write_net_with("num_output: 3", "num_output: 3000");
  ASSERT_EQ(run_cortado(folder_.path(), train_ + " --set max_iter=2 --snapshot-format cortado").exit_code, 0);
  std::string before = folder_.read("small_iter_2.safetensors");
  expect_error(train_ + " --set max_iter=2 --snapshot-format cortado --set base_lr=0.01", {"small_iter_2"},
               "ulimit -f 64; trap '' XFSZ;");
  EXPECT_EQ(folder_.read("small_iter_2.safetensors"), before);
}

TEST_F(Errors, NonFiniteLossNamesTheLayerAndKeepsTheSnapshot) {
  folder_.write("solver.prototxt", small_solver("snapshot: 1"));
  expect_error(train_ + " --set base_lr=1e30 --set snapshot_format=BINARYPROTO", {"iteration", "not finite"});
  write_net_with("type: \"gaussian\" std: 1", "type: \"constant\" value: 3e38");
  expect_error(train_, {"iteration 0: the loss is", "layer 'conv", "no snapshot was made yet"});
}

TEST_F(Errors, NothingToLearn) {
  write_net_with(
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"score\" bottom: \"label\" top: \"loss\" }",
      "");
  expect_error(train_, {"net.prototxt: nothing can be learned", "no loss"});
  write_net_with("top: \"loss\"", "top: \"loss\" loss_weight: 0");
  expect_error(train_, {"net.prototxt: nothing can be learned", "no loss"});
  folder_.write("net.prototxt",
                "name: 'deploy'\nlayer { name: 'data' type: 'Input' top: 'data' input_param { "
                "shape { dim: 2 dim: 4 } } }\nlayer { name: 'ip' type: 'InnerProduct' bottom: "
                "'data' top: 'ip' inner_product_param { num_output: 2 } }\n");
  expect_error(train_, {"net.prototxt: nothing can be learned", "no loss", "deploy"});
  std::string net = small_net();
  for (const char* name : {"convolution_param", "inner_product_param"})
    net.insert(net.find(name), "param { lr_mult: 0 } param { lr_mult: 0 } ");
  folder_.write("net.prototxt", net);
  expect_error(train_, {"net.prototxt: nothing can be learned", "lr_mult of all weights is 0"});
  folder_.write("net.prototxt", R"(layer { name: "data" type: "DummyData" top: "data" top: "target"
  dummy_data_param { shape { dim: 2 dim: 3 } shape { dim: 2 dim: 3 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "data" bottom: "target" top: "loss" })");
  expect_error(train_, {"net.prototxt: nothing can be learned", "has weights"});
  folder_.write("net.prototxt", folder_.read("net.prototxt") + R"(
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 2 } })");
  expect_error(train_, {"net.prototxt: nothing can be learned", "no loss depends on weights"});
}

TEST_F(Errors, NetsWithoutLayers) {
  ASSERT_EQ(run_cortado(folder_.path(), train_ + " --set max_iter=1").exit_code, 0);
  folder_.write("net.prototxt", "");
  for (const std::string& command :
       {train_, std::string("show --model net.prototxt"), std::string("time --model net.prototxt"),
        std::string("test --model net.prototxt --weights small_iter_1.caffemodel")})
    expect_error(command, {"net.prototxt: there is no layer in it"});
  folder_.write("net.prototxt", "layer { name: 'ip' type: 'InnerProduct' include { phase: TEST } }");
  expect_error(train_, {"net.prototxt: none of its layers is of phase TRAIN"});
}

TEST_F(Errors, TruncatedDatabase) {
  ASSERT_EQ(run_cortado(folder_.path(), "data generate shapes --samples 200").exit_code, 0);
  std::string net = small_net();
  size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
  net.replace(begin, end - begin,
              "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\"\n"
              "  data_param { source: \"shapes\" batch_size: 8 backend: LMDB } }\n");
  folder_.write("net.prototxt", net);
  std::string database = folder_.file("shapes/data.mdb");
  ASSERT_TRUE(std::filesystem::exists(database));
  std::filesystem::resize_file(database, 6000);
  expect_error(train_, {"layer 'data'", "shapes"});
}

TEST_F(Errors, CorruptJpegNamesTheFile) {
  std::string net = small_net();
  size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
  net.replace(begin, end - begin,
              "layer { name: \"data\" type: \"ImageData\" top: \"data\" top: \"label\"\n"
              "  image_data_param { source: \"list.txt\" batch_size: 1 new_height: 6 new_width: 6 } }\n");
  folder_.write("net.prototxt", net);
  folder_.write("broken.jpg", "\xff\xd8\xff\xe0 this is no photograph");
  folder_.write("list.txt", "broken.jpg 0\n");
  expect_error(train_, {"broken.jpg"});
  folder_.write("list.txt", "absent.jpg 0\n");
  expect_error(train_, {"absent.jpg"});
}

}  // namespace
}  // namespace cortado
