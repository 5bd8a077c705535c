// Numbers that are infinite or not a number, wherever a user may give them: refused by name, exit code 2.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "cortado/net/hdf5_file.h"
#include "cortado/net/weights.h"
#include "cortado/train/safetensors.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

class FiniteErrors : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }

  static std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
    const size_t at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    return text.replace(at, old_text.size(), new_text);
  }

  CommandResult run(const std::string& arguments) {
    return run_cortado(folder_.path(), arguments, "timeout -k 5 90");
  }
  void expect_error(const std::string& arguments, const std::vector<std::string>& parts) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    const size_t line = result.output.find("cortado: error: ");
    ASSERT_NE(line, std::string::npos) << result.output;
    EXPECT_EQ(result.output.find("cortado: error: ", line + 1), std::string::npos) << result.output;
    const std::string message = result.output.substr(line, result.output.find('\n', line) - line);
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }

  // 24 samples of 2x6x6 with labels in list.txt's data.h5; `value` at sample `broken` (-1: nowhere).
  void write_data(int broken, float value) {
    Blob data{{24, 2, 6, 6}, {}}, label{{24}, {}};
    for (int i = 0; i < 24 * 72; ++i) data.values.push_back(std::sin(static_cast<float>(i)));
    for (int i = 0; i < 24; ++i) label.values.push_back(static_cast<float>(i % 3));
    if (broken >= 0) data.values[static_cast<size_t>(broken * 72 + 5)] = value;
    Hdf5Writer writer;
    writer.blob("data", data);
    writer.blob("label", label);
    writer.write(folder_.file("data.h5"));
    folder_.write("list.txt", "data.h5\n");
    std::string net = small_net();
    const size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
    net.replace(begin, end - begin,
                "layer { name: \"data\" type: \"HDF5Data\" top: \"data\" top: \"label\"\n"
                "  hdf5_data_param { source: \"list.txt\" batch_size: 4 } }\n");
    folder_.write("net.prototxt", net);
  }

  const std::string train_ = "train --threads 1 --solver solver.prototxt";
  TemporaryFolder folder_;
};

TEST_F(FiniteErrors, ASampleIsNamedInItsIterationByWhateverKernels) {
  for (const float value : {not_a_number, std::numeric_limits<float>::infinity()}) {
    write_data(14, value);
    for (const char* kernels : {"", " --kernels onednn", " --kernels implicit-gemm", " --kernels reference"})
      expect_error(train_ + kernels,
                   {"iteration 3: ", "layer 'data'", "data.h5 row 14: ", "sample 2 of the batch", "'data'"});
  }
  write_data(14, not_a_number);
  expect_error(train_ + " --ranks 2 --strategy data", {"iteration 3: ", "layer 'data'", "data.h5 row 14: "});
  write_data(-1, 0);
  ASSERT_EQ(run(train_ + " --set max_iter=2").exit_code, 0);
  write_data(5, not_a_number);
  expect_error("test --threads 1 --model net.prototxt --weights small_iter_2.caffemodel --iterations 3",
               {"layer 'data'", "data.h5 row 5: ", "sample 1 of the batch"});
}

TEST_F(FiniteErrors, NumbersOfFilesAreRefusedByFieldAndLine) {
  for (const char* field : {"momentum2: nan", "delta: inf", "clip_gradients: nan", "rms_decay: -inf",
                            "warmup_start_lr: 1e39", "gamma: nan"}) {
    folder_.write("solver.prototxt", small_solver(field));
    const std::string name = std::string(field).substr(0, std::string(field).find(':'));
    expect_error(train_, {"solver.prototxt:3: " + name + " is "});
  }
  folder_.write("solver.prototxt", replaced(small_solver(), "base_lr: 0.05", "base_lr: nan"));
  expect_error(train_, {"solver.prototxt:1: base_lr is nan"});
  folder_.write("solver.prototxt", small_solver());
  expect_error(train_ + " --set base_lr=inf", {"set base_lr", "'inf'"});
  const auto with = [&](const std::string& old_text, const std::string& new_text,
                        const std::vector<std::string>& parts) {
    folder_.write("net.prototxt", replaced(small_net(), old_text, new_text));
    expect_error(train_, parts);
    expect_error("show --model net.prototxt", parts);
  };
  with("type: \"xavier\"", "type: \"constant\" value: nan", {"net.prototxt:7: value is nan"});
  with("type: \"xavier\"", "type: \"uniform\" min: -inf", {"net.prototxt:7: min is -inf"});
  with("type: \"gaussian\" std: 1", "type: \"gaussian\" std: nan", {"net.prototxt:5: std is nan"});
  with("top: \"loss\"", "top: \"loss\" loss_weight: nan", {"net.prototxt:11: loss_weight is nan"});
  with("convolution_param", "transform_param { scale: nan } convolution_param",
       {"net.prototxt:7: scale is nan"});
  with("convolution_param", "transform_param { mean_value: inf } convolution_param",
       {"net.prototxt:7: mean_value is inf"});
  with("type: \"xavier\"", "type: \"uniform\" min: 2 max: 1", {"net.prototxt:6", "min 2 is more than max 1"});
  folder_.write("net.prototxt", replaced(small_net(), "type: \"xavier\"", "type: \"gaussian\" std: 3e38"));
  expect_error(train_, {"parameter conv/weight", "filler"});
}

TEST_F(FiniteErrors, WeightsOfFilesAreRefusedByName) {
  for (const char* format : {"caffe", "hdf5", "cortado"})
    ASSERT_EQ(run(train_ + " --set max_iter=2 --snapshot-format " + format).exit_code, 0);
  Weights weights = read_weights(folder_.file("small_iter_2.caffemodel"));
  weights[0].blobs[1].values[2] = not_a_number;
  Hdf5Writer writer;
  for (const LayerWeights& layer : weights)
    for (size_t i = 0; i < layer.blobs.size(); ++i)
      writer.blob("data/" + layer.layer + "/" + std::to_string(i), layer.blobs[i]);
  writer.write(folder_.file("nan.h5"));
  SafetensorsFile file = read_safetensors(folder_.file("small_iter_2.safetensors"));
  for (auto& tensor : file.tensors)
    if (tensor.name == "conv/bias") tensor.values[2] = not_a_number;
  write_safetensors(folder_.file("nan.safetensors"), file);
  for (const char* name : {"nan.h5", "nan.safetensors"}) {
    expect_error(train_ + " --weights " + name, {name, "blob 1 of layer 'conv'", "nan at 2"});
    expect_error(std::string("test --threads 1 --model net.prototxt --weights ") + name,
                 {name, "blob 1 of layer 'conv'", "nan at 2"});
  }
  expect_error(train_ + " --snapshot nan.safetensors",
               {"nan.safetensors", "parameter 'conv/bias' has the value nan at 2"});
}

TEST_F(FiniteErrors, TestsTellOfOutputsThatAreNotFinite) {
  ASSERT_EQ(run(train_ + " --set max_iter=2").exit_code, 0);
  std::string net = replaced(small_net(), "std: 1", "std: 3e38");
  net.erase(net.find("layer { name: \"loss\""),
            net.find("layer { name: \"accuracy\"") - net.find("layer { name: \"loss\""));  // accuracy alone
  folder_.write("net.prototxt", net);
  for (const char* more : {"", " --ranks 2 --strategy data"})
    expect_error(
        std::string("test --threads 1 --model net.prototxt --weights small_iter_2.caffemodel") + more,
        {"batch 0: the first value that is not finite is in layer '"});
}

}  // namespace
}  // namespace cortado
