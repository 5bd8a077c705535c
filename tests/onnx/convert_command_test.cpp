// `cortado convert`: its words and its files. What nets compute is compared in the scripts beside this file.
#include <gtest/gtest.h>

#include "cortado/base/file.h"

#include "tests/app/run_command.h"
#include "tests/onnx/models.h"

namespace cortado::testing {
namespace {

// A model of one fully connected layer and a Softmax, as a file.
std::string score_model() {
  ModelBuilder builder;
  builder.input("images", {0, 3, 2, 2}).output("scores");
  builder.floats("fc.weight", {5, 12}, std::vector<float>(60, 0.25f));
  builder.node("Flatten", {"images"}, {"flat"});
  ModelBuilder::attribute(builder.node("Gemm", {"flat", "fc.weight"}, {"fc"}), "transB", 1);
  ModelBuilder::attribute(builder.node("Softmax", {"fc"}, {"scores"}), "axis", 1);
  return builder.model.SerializeAsString();
}

TEST(ConvertCommand, AModelBecomesANetToTrain) {
  TemporaryFolder folder;
  folder.write("model.onnx", score_model());
  const CommandResult result = run_cortado(folder.path(), "convert model.onnx --output net --loss --batch 4");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "Wrote net.prototxt\nWrote net.caffemodel\nWrote net_train_val.prototxt\n");
  EXPECT_EQ(run_cortado(folder.path(), "show --model net.prototxt").exit_code, 0);
  const CommandResult timed =
      run_cortado(folder.path(), "time --model net_train_val.prototxt --input-shape 3x2x2 --iterations 1");
  EXPECT_EQ(timed.exit_code, 0) << timed.output;
}

TEST(ConvertCommand, AFolderGetsTheModelsName) {
  TemporaryFolder folder;
  folder.write("model.onnx", score_model());
  EXPECT_EQ(run_cortado(folder.path(), "convert model.onnx --output .").output,
            "Wrote ./model.prototxt\nWrote ./model.caffemodel\n");
  EXPECT_EQ(run_cortado(folder.path(), "convert model.onnx --output none/").exit_code, 2);
}

TEST(ConvertCommand, ANetGoesToOnnxAndItsWeightsToOtherFormats) {
  TemporaryFolder folder;
  folder.write("model.onnx", score_model());
  const auto run = [&](const std::string& words) {
    const CommandResult result = run_cortado(folder.path(), "convert " + words);
    EXPECT_EQ(result.exit_code, 0) << result.output;
  };
  run("model.onnx --output a");
  run("a.prototxt --weights a.caffemodel --output b.safetensors");
  run("a.prototxt --weights b.safetensors --output c.h5");
  run("a.prototxt --weights c.h5 --output d.caffemodel");
  run("a.prototxt --weights d.caffemodel --output d.safetensors");
  EXPECT_EQ(folder.read("d.safetensors"), folder.read("b.safetensors"));
  run("a.prototxt --weights d.caffemodel --output back.onnx");
  run("back.onnx --output e");
  EXPECT_EQ(folder.read("e.caffemodel"), folder.read("a.caffemodel"));
  EXPECT_EQ(folder.read("e.prototxt"), folder.read("a.prototxt"));
}

TEST(ConvertCommand, WrongWordsAreErrors) {
  TemporaryFolder folder;
  folder.write("model.onnx", score_model());
  folder.write("text.onnx", "this is no model");
  folder.write("net.prototxt", small_net());
  const auto expect_error = [&](const std::string& words, const std::string& part) {
    const CommandResult result = run_cortado(folder.path(), "convert " + words);
    EXPECT_EQ(result.exit_code, 2) << words << ": " << result.output;
    EXPECT_NE(result.output.find(part), std::string::npos) << words << ": " << result.output;
  };
  expect_error("text.onnx --output a", "text.onnx: not a whole binary");
  expect_error("none.onnx --output a", "none.onnx");
  expect_error("model.onnx --output a --weights w.caffemodel", "an ONNX model has its weights");
  expect_error("model.onnx --output a --input-shape 3xx2", "give extents like 3x227x227");
  expect_error("net.prototxt --output a.onnx", "its layers have weights; give them, too");
  expect_error("net.prototxt --output a.onnx --loss", "--loss is for an ONNX model");
  expect_error("model.onnx", "--output");
  EXPECT_FALSE(folder.has("a.prototxt"));
  EXPECT_FALSE(folder.has("a.onnx"));
  EXPECT_EQ(run_cortado(folder.path(), "convert model.onnx --output model").exit_code, 0);
  expect_error("model.prototxt --weights model.caffemodel --output model.caffemodel", "model.caffemodel");
  expect_error("model.prototxt --weights model.caffemodel --output weights.bin",
               "weights are written as .caffemodel");
}

}  // namespace
}  // namespace cortado::testing
