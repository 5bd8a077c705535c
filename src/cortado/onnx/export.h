#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// The version of ONNX's default operators that is written.
constexpr int64_t written_opset = 13;

// What a network becomes.
struct ExportedModel {
  ModelProto model;
  std::vector<std::string> notices;  // what the user should know, a line each
};

// Turns a network of phase TEST into a model that gives the same outputs. Source layers become the graph's
// inputs, whose batch size is open ('N') where no layer fixes it; losses, accuracies and sources that no
// other layer reads are left out. `values` gives the values of a parameter in the file's order. Throws
// UserError naming the layer that ONNX has no operator for.
ExportedModel export_network(const Network& network,
                             const std::function<std::vector<float>(ParameterIndex)>& values);

// Writes a model file. Throws UserError beyond 2 GiB, protobuf's limit.
void write_model(const std::string& path, const ModelProto& model);

}  // namespace cortado::onnx
