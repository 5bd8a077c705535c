#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cortado::api {

// What a conversion wrote, and what the user should know of it, a line each.
struct Converted {
  std::vector<std::string> files;
  std::vector<std::string> notices;
};

struct FromOnnxOptions {
  int64_t batch = 0;          // samples; 0: as the model says, 1 where it leaves them open
  std::string input_shape{};  // of a sample, in place of the model's: "3x224x224", "1x64x64,64x64"
  bool loss = false;          // writes a net to train, too
};

// Reads an ONNX model (opset 13 to 18) and writes PREFIX.prototxt and PREFIX.caffemodel, a net of Caffe's
// layers that gives the same outputs; with `loss` also PREFIX_train_val.prototxt, whose data the user names.
// Throws UserError naming file, node, operator, value and remedy (docs/reference/onnx.md).
Converted from_onnx(const std::string& model, const std::string& prefix, const FromOnnxOptions& options = {});

struct ToOnnxOptions {
  int level = 0;  // of the net's state, whose phase is TEST
  std::vector<std::string> stages{};
  int64_t batch = 0;          // samples; 0: as the file says
  std::string input_shape{};  // of a sample where the data are not at hand
};

// Writes a net of phase TEST with its weights (.caffemodel, .h5, .safetensors) as an ONNX model of opset 13.
// Losses and accuracies are left out. Throws UserError naming file and layer.
Converted to_onnx(const std::string& net, const std::string& weights, const std::string& output,
                  const ToOnnxOptions& options = {});

// What the tensors of a .safetensors file are called. torchvision: as in the state_dict of torchvision's net,
// for nets of the model zoo that it has, too.
enum class TensorNames { layers, torchvision };

// Writes weights of a net in the format that the name of `output` says: .caffemodel, .h5 or .safetensors.
// With `names` of torchvision, `weights` or `output` is a .safetensors file of such names; of two, it is
// `weights` where that has them. Throws UserError: another ending, weights of another net, a net whose layers
// are not called as the zoo's.
Converted convert_weights(const std::string& net, const std::string& weights, const std::string& output,
                          const ToOnnxOptions& options = {}, TensorNames names = TensorNames::layers);

}  // namespace cortado::api
