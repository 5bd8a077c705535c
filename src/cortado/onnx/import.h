#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/net/weights.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// The versions of ONNX's default operators whose meaning is read.
constexpr int64_t oldest_opset = 13, newest_opset = 18;

struct ImportOptions {
  int64_t batch = 0;  // samples, where the model leaves them open or has others; 0: the model's, else 1
  // Shapes of the inputs, samples first, in place of the model's; empty: the model's.
  std::function<std::vector<Shape>(size_t inputs)> input_shapes{};
  std::string folder{};  // the model's, for external data; empty: none is read
};

// What a model becomes.
struct ImportedNet {
  caffe::NetParameter net;  // from Input layers to the graph's outputs
  Weights weights;
  std::vector<std::string> notices;  // what the user should know, a line each
};

// Reads a model file. Throws UserError: not there, no ONNX file.
ModelProto read_model(const std::string& path);

// Turns a model into a net that gives the same outputs. `path`: of the model, for messages. Throws UserError
// naming file, node, operator, value and remedy.
ImportedNet import_model(const ModelProto& model, const std::string& path, const ImportOptions& options = {});

// The same net to train: the inputs come from Data layers, whose `source` is the user's to give, for training
// and for testing; SoftmaxWithLoss and Accuracy take the scores that the net puts out. A Softmax at the end
// is left out. Throws UserError unless there is one input and one output with classes on axis 1.
caffe::NetParameter with_loss(const caffe::NetParameter& net, const std::string& path);

}  // namespace cortado::onnx
