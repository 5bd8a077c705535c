// Solver files, and nets of several states, that Caffe runs.
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "cortado/net/weights.h"
#include "cortado/train/safetensors.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

// An autoencoder as Caffe's example for MNIST has it: two losses of one name, one of them only looked at, a
// layer of data for each of three states.
const std::string autoencoder = [] {
  auto data = [](const std::string& phase, const std::string& stage) {
    return "layer { name: 'images' type: 'DummyData' top: 'image' include { phase: " + phase + stage +
           " } dummy_data_param { shape { dim: 6 dim: 1 dim: 4 dim: 4 } data_filler { type: 'uniform' } } "
           "}\n";
  };
  auto product = [](const std::string& name, const std::string& bottom, int outputs) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: '" + bottom + "' top: '" + name +
           "' inner_product_param { num_output: " + std::to_string(outputs) +
           " weight_filler { type: 'gaussian' std: 1 sparse: 3 } bias_filler { type: 'constant' } } }\n";
  };
  return "name: 'auto'\n" + data("TRAIN", "") + data("TEST", " stage: 'seen'") +
         data("TEST", " stage: 'unseen'") +
         "layer { name: 'flat' type: 'Flatten' bottom: 'image' top: 'flat' }\n" +
         product("code", "image", 5) + "layer { name: 'bend' type: 'Sigmoid' bottom: 'code' top: 'bent' }\n" +
         product("decode", "bent", 16) +
         "layer { name: 'loss' type: 'SigmoidCrossEntropyLoss' bottom: 'decode' bottom: 'flat' "
         "top: 'entropy' loss_weight: 1 }\n"
         "layer { name: 'shown' type: 'Sigmoid' bottom: 'decode' top: 'shown' }\n"
         "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'shown' bottom: 'flat' top: 'distance' "
         "loss_weight: 0 }\n";
}();
constexpr const char* autoencoder_solver =
    "net: 'auto.prototxt' test_iter: 2 test_iter: 1 test_state { stage: 'seen' } test_state { stage: "
    "'unseen' }\n"
    "test_interval: 5 test_compute_loss: true base_lr: 0.01 lr_policy: 'step' gamma: 0.1 stepsize: 10\n"
    "max_iter: 10 display: 5 weight_decay: 0.0005 momentum: 0.9 snapshot: 5\n";

class CaffeSolvers : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
    folder_.write("auto.prototxt", autoencoder);
    folder_.write("auto_solver.prototxt", autoencoder_solver);
  }
  CommandResult cortado(const std::string& arguments) { return run_cortado(folder_.path(), arguments); }
  void expect_runs(const std::string& arguments) {
    const CommandResult result = cortado(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << ": " << result.output;
  }
  TemporaryFolder folder_;
};

TEST_F(CaffeSolvers, TwoLayersOfOneName) {
  const std::string train = "train --threads 1 --solver auto_solver.prototxt ";
  const CommandResult result = cortado(train + "--snapshot-format cortado --set snapshot_prefix=whole");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (const char* line :
       {"Testing net (#1)", "Test net output #0: distance = ", "Train net output #1: entropy = "})
    EXPECT_NE(result.output.find(line), std::string::npos) << line << "\n" << result.output;
  for (const std::string format : {"caffe", "hdf5"}) {
    const std::string state = format == "caffe" ? ".solverstate" : ".solverstate.h5";
    expect_runs(train + "--set max_iter=5 --set snapshot_prefix=half --snapshot-format " + format);
    expect_runs(train + "--set snapshot_prefix=rest --snapshot-format cortado --snapshot half_iter_5" +
                state);
    EXPECT_EQ(read_safetensors(folder_.file("whole_iter_10.safetensors")).tensors,
              read_safetensors(folder_.file("rest_iter_10.safetensors")).tensors)
        << format;
  }
  folder_.write("s.json", R"({"format": "cortado-strategy", "version": 1, "ranks": 1,
                              "layers": {"loss": {}, "loss#2": {}, "*": {}}})");
  expect_runs(train + "--strategy s.json --set max_iter=1 --set snapshot_prefix=cut");
}

// As in Caffe, a test net has the parameters of the layers of its layers' names, not those of their `param`
// names.
TEST_F(CaffeSolvers, ATestNetSharesByTheNamesOfLayers) {
  std::string tied = small_net(), apart = small_net();
  const std::string score = "layer { name: \"score\" type: \"InnerProduct\" bottom: \"conv\" top: \"score\"";
  tied.replace(tied.find(score), score.size(), score + " param { name: \"w\" } param { name: \"b\" }");
  folder_.write("tied.prototxt", tied);
  folder_.write("apart.prototxt", apart);
  auto last_test = [&](const std::string& test_net) {
    folder_.write("solver.prototxt",
                  "train_net: 'tied.prototxt' test_net: '" + test_net +
                      "' test_iter: 1 test_interval: 20 test_initialization: false base_lr: 0.05\n"
                      "lr_policy: 'fixed' max_iter: 20 snapshot_prefix: 'small' random_seed: 3\n");
    const CommandResult result = cortado("train --threads 1 --solver solver.prototxt");
    EXPECT_EQ(result.exit_code, 0) << result.output;
    const size_t at = result.output.find("Test net output #1: loss = ");
    return at == std::string::npos ? result.output : result.output.substr(at, 40);
  };
  EXPECT_EQ(last_test("tied.prototxt"), last_test("apart.prototxt"));
}

TEST_F(CaffeSolvers, LayersWithWeightsOfOneName) {
  std::string net = small_net();
  const std::string twice =
      "layer { name: \"conv\" type: \"InnerProduct\" bottom: \"conv\" top: \"hidden\"\n"
      "  inner_product_param { num_output: 3 weight_filler { type: \"xavier\" } } }\n";
  net.insert(net.find("layer { name: \"score\""), twice);
  folder_.write("net.prototxt", net);
  const std::string train = "train --threads 1 --solver solver.prototxt ";
  expect_runs(train + "--snapshot-format cortado --set snapshot_prefix=whole");
  expect_runs(train + "--set max_iter=10 --set snapshot_prefix=half");
  expect_runs(train +
              "--snapshot half_iter_10.solverstate --snapshot-format cortado --set snapshot_prefix=rest");
  EXPECT_EQ(read_safetensors(folder_.file("whole_iter_20.safetensors")).tensors,
            read_safetensors(folder_.file("rest_iter_20.safetensors")).tensors);
  // Where Caffe would mix them up, they are refused by name.
  for (const std::string more : {"--snapshot-format hdf5", "--set test_iter=1 --set test_interval=5"}) {
    const CommandResult refused = cortado(train + more);
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_NE(refused.output.find("two layers with parameters are named 'conv'"), std::string::npos)
        << refused.output;
  }
}

// What Caffe's SolverParameter has defaults for.
TEST_F(CaffeSolvers, FieldsMayBeLeftOut) {
  folder_.write("solver.prototxt", "net: 'net.prototxt' lr_policy: 'fixed'");
  const CommandResult result = cortado("train --threads 1 --solver solver.prototxt");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(folder_.has("solver_iter_0.caffemodel")) << result.output;
  for (const std::string fields :
       {"lr_policy: 'exp' base_lr: 0.1", "lr_policy: 'inv' base_lr: 0.1", "lr_policy: 'poly' base_lr: 0.1",
        "lr_policy: 'multistep' base_lr: 0.1",
        "lr_policy: 'multistep' base_lr: 0.1 stepvalue: 2 stepvalue: 1",
        "lr_policy: 'step' stepsize: 2 base_lr: 0.1", "lr_policy: 'sigmoid' stepsize: 2 base_lr: 0.1",
        "lr_policy: 'fixed' base_lr: -0.01",
        "lr_policy: 'fixed' base_lr: 0.01 clip_gradients: 0 weight_decay: 0.1",
        "lr_policy: 'fixed' base_lr: 0.01 test_interval: 1",
        "lr_policy: 'fixed' base_lr: 0.01 test_interval: 1 test_iter: 0 test_compute_loss: true",
        "lr_policy: 'fixed' base_lr: 0.01 momentum: 1", "lr_policy: 'fixed' base_lr: 0.01 rms_decay: 2",
        "lr_policy: 'fixed' base_lr: 0.01 weight_decay: -0.01"}) {
    folder_.write("solver.prototxt", "net: 'net.prototxt' max_iter: 3 " + fields);
    expect_runs("train --threads 1 --solver solver.prototxt");
  }
}

TEST_F(CaffeSolvers, AFolderAsSnapshotPrefixTakesTheSolversName) {
  const std::string train = "train --threads 1 --solver solver.prototxt --set max_iter=1 ";
  std::filesystem::create_directory(folder_.file("kept"));
  for (const std::string prefix : {"kept", "kept/"}) {
    expect_runs(train + "--set snapshot_prefix=" + prefix);
    EXPECT_TRUE(std::filesystem::remove(folder_.file("kept/solver_iter_1.caffemodel"))) << prefix;
  }
  std::string solver = small_solver();
  folder_.write("solver.prototxt", solver.replace(solver.find("\"small\""), 7, "''"));
  expect_runs(train);
  EXPECT_TRUE(folder_.has("solver_iter_1.caffemodel"));
}

TEST_F(CaffeSolvers, WeightsAreAListWithBlanks) {
  expect_runs("train --threads 1 --solver solver.prototxt --set max_iter=1");
  folder_.write("solver.prototxt",
                small_solver("weights: 'small_iter_1.caffemodel , small_iter_1.caffemodel'"));
  const CommandResult result =
      cortado("train --threads 1 --solver solver.prototxt --set max_iter=1 --set snapshot_prefix=next");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  const std::string line = "Finetuning from small_iter_1.caffemodel\n";
  const size_t first = result.output.find(line);
  ASSERT_NE(first, std::string::npos) << result.output;
  EXPECT_NE(result.output.find(line, first + 1), std::string::npos) << result.output;
}

// Each layer's blob has the shape in which the layer sees it.
TEST_F(CaffeSolvers, SnapshotsWriteEachLayersOwnShape) {
  folder_.write("net.prototxt", R"(name: "tied"
layer { name: "data" type: "DummyData" top: "data" dummy_data_param { shape { dim: 4 dim: 3 }
  data_filler { type: "gaussian" } } }
layer { name: "encode" type: "InnerProduct" bottom: "data" top: "code" param { name: "w" }
  inner_product_param { num_output: 5 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "decode" type: "InnerProduct" bottom: "code" top: "out" param { name: "w" share_mode: PERMISSIVE }
  inner_product_param { num_output: 3 bias_term: false } }
layer { name: "loss" type: "EuclideanLoss" bottom: "out" bottom: "data" top: "loss" }
)");
  const std::string train = "train --threads 1 --solver solver.prototxt ";
  expect_runs(
      train +
      "--snapshot-format cortado --set snapshot_prefix=whole --set test_iter=1 --set test_interval=5");
  for (const std::string format : {"caffe", "hdf5"}) {
    expect_runs(train + "--set max_iter=10 --set snapshot_prefix=half --snapshot-format " + format);
    const std::string end = format == "caffe" ? "" : ".h5";
    const Weights weights = read_weights(folder_.file("half_iter_10.caffemodel" + end));
    const LayerWeights& decode = weights[weights[0].layer == "decode" ? 0 : 1];
    const LayerWeights& encode = weights[weights[0].layer == "decode" ? 1 : 0];
    EXPECT_EQ(encode.blobs[0].shape, (Shape{5, 3}));
    if (format == "caffe") {
      EXPECT_EQ(decode.blobs[0].shape, (Shape{3, 5}));
      EXPECT_EQ(decode.blobs[0].values, encode.blobs[0].values);
    }
    expect_runs(train +
                "--set snapshot_prefix=rest --snapshot-format cortado --snapshot half_iter_10.solverstate" +
                end);
    EXPECT_EQ(read_safetensors(folder_.file("whole_iter_20.safetensors")).tensors,
              read_safetensors(folder_.file("rest_iter_20.safetensors")).tensors)
        << format;
    expect_runs(train + "--weights half_iter_10.caffemodel" + end + " --set max_iter=1");
  }
}

TEST_F(CaffeSolvers, ShapesOfBareInputsComeFromTheCommandLine) {
  const std::string layers =
      "layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c'"
      " convolution_param { num_output: 2 kernel_size: 3 } }\n";
  for (const std::string input : {"input: 'data'\n", "layer { name: 'd' type: 'Input' top: 'data' }\n"}) {
    folder_.write("deploy.prototxt", "name: 'n'\n" + input + layers);
    const CommandResult refused = cortado("time --threads 1 --model deploy.prototxt --iterations 1");
    EXPECT_EQ(refused.exit_code, 2) << refused.output;
    EXPECT_NE(refused.output.find("has no shape"), std::string::npos) << refused.output;
    EXPECT_NE(refused.output.find("give an input shape"), std::string::npos) << refused.output;
    expect_runs("time --threads 1 --model deploy.prototxt --iterations 1 --input-shape 3x8x8");
  }
}

}  // namespace
}  // namespace cortado
