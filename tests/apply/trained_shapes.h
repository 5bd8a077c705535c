#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>

#include "cortado/data/datum.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/lmdb.h"

#include "tests/app/run_command.h"

namespace cortado {

// A small net trained on drawn shapes of four classes, its files in a folder that all tests of a suite share:
// train_val.prototxt, deploy.prototxt, weights.caffemodel, the database `test` of 50 samples, these as images
// in `pngs` and a list of them.
class TrainedShapes : public testing::Test {
 public:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    folder_->write("train_val.prototxt",
                   data_layer("TRAIN", "train", 32) + data_layer("TEST", "test", 10) + body() + scores());
    folder_->write("deploy.prototxt",
                   "name: 'shapes' layer { name: 'data' type: 'Input' top: 'data' input_param { "
                   "shape { dim: 16 dim: 3 dim: 16 dim: 16 } } }\n" +
                       body() + "layer { name: 'prob' type: 'Softmax' bottom: 'ip' top: 'prob' }\n");
    folder_->write("solver.prototxt",
                   "net: 'train_val.prototxt' base_lr: 0.05 lr_policy: 'fixed' momentum: 0.9 max_iter: 60 "
                   "snapshot_prefix: 'shapes'");
    must_run("data generate train --samples 320 --size 16 --classes 4 --seed 1");
    must_run("data generate test --samples 50 --size 16 --classes 4 --seed 2");
    must_run("train --threads 1 --solver solver.prototxt");
    std::filesystem::rename(folder_->file("shapes_iter_60.caffemodel"), folder_->file("weights.caffemodel"));
    write_pngs();
  }
  static void TearDownTestSuite() { folder_.reset(); }

 protected:
  // The common words of `classify` and `extract`; deploy net, preprocessing as the data layer's.
  static constexpr const char* deployed =
      " --threads 1 --model deploy.prototxt --weights weights.caffemodel --mean-value 127.5 --scale "
      "0.0078125 ";

  static CommandResult run(const std::string& arguments) { return run_cortado(folder_->path(), arguments); }
  static std::string must_run(const std::string& arguments) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.output;
    return result.output;
  }
  static std::string refusal(const std::string& arguments) {
    const CommandResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << "\n" << result.output;
    const size_t line = result.output.find("cortado: error: ");
    if (line == std::string::npos) return "no message: " + result.output;
    EXPECT_EQ(result.output.find('\n', line), result.output.size() - 1)
        << "more than a line: " << result.output;
    return result.output.substr(line);
  }

  static std::unique_ptr<TemporaryFolder> folder_;

 private:
  static std::string data_layer(const std::string& phase, const std::string& source, int batch) {
    return "layer { name: 'data' type: 'Data' top: 'data' top: 'label' include { phase: " + phase +
           " } transform_param { scale: 0.0078125 mean_value: 127.5 } data_param { source: '" + source +
           "' batch_size: " + std::to_string(batch) + " backend: LMDB } }\n";
  }
  static std::string body() {
    return R"(
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 8 kernel_size: 5 weight_filler { type: 'msra' } } }
layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool' pooling_param { kernel_size: 2 stride: 2 } }
layer { name: 'ip' type: 'InnerProduct' bottom: 'pool' top: 'ip'
  inner_product_param { num_output: 4 weight_filler { type: 'msra' } } }
)";
  }
  static std::string scores() {
    return "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' include { "
           "phase: TEST } }\n"
           "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";
  }

  static void write_pngs() {
    std::filesystem::create_directory(folder_->file("pngs"));
    std::string list;
    LmdbReader reader(folder_->file("test"));
    caffe::Datum datum;
    DatumPixels pixels;
    for (int64_t i = 0; i < reader.size(); ++i) {
      parse_datum(reader.at(i).value, datum);
      datum_pixels(datum, ColorMode::native, pixels);
      const std::vector<uint8_t> file = encode_image(image_of(pixels.view), "png");
      const std::string name = (i < 10 ? "0" : "") + std::to_string(i) + ".png";
      folder_->write("pngs/" + name, {file.begin(), file.end()});
      list += name + " " + std::to_string(datum.label()) + "\n";
    }
    folder_->write("list.txt", list);
  }
};

inline std::unique_ptr<TemporaryFolder> TrainedShapes::folder_;

// The number after the first `before` of a text; NaN where it is not there.
inline double number_after(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  return at == std::string::npos ? NAN : std::stod(text.substr(at + before.size()));
}

}  // namespace cortado
