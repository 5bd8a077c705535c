#include <fmt/format.h>
#include <set>

#include "cortado/base/error.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
#include "cortado/onnx/import.h"

namespace cortado::onnx {
namespace {

void include_in(caffe::LayerParameter& layer, caffe::Phase phase) { layer.add_include()->set_phase(phase); }

void add_data(caffe::NetParameter& net, const std::string& name, const std::string& blob, caffe::Phase phase,
              int64_t batch) {
  caffe::LayerParameter& layer = *net.add_layer();
  layer.set_name(name);
  layer.set_type("Data");
  layer.add_top(blob);
  layer.add_top("label");
  include_in(layer, phase);
  caffe::DataParameter& data = *layer.mutable_data_param();
  data.set_source(phase == caffe::TRAIN ? "train_lmdb" : "test_lmdb");
  data.set_batch_size(static_cast<uint32_t>(batch));
  data.set_backend(caffe::DataParameter::LMDB);
}

void add_head(caffe::NetParameter& net, const std::string& name, const std::string& type,
              const std::string& scores) {
  caffe::LayerParameter& layer = *net.add_layer();
  layer.set_name(name);
  layer.set_type(type);
  layer.add_bottom(scores);
  layer.add_bottom("label");
  layer.add_top(name);
}

// The scores that the net puts out; a Softmax that makes its only output goes.
std::string take_scores(caffe::NetParameter& net, const std::string& output) {
  for (int i = 0; i < net.layer_size(); ++i) {
    if (net.layer(i).type() != "Softmax" || net.layer(i).top(0) != output) continue;
    const std::string scores = net.layer(i).bottom(0);
    net.mutable_layer()->DeleteSubrange(i, 1);
    return scores;
  }
  return output;
}

}  // namespace

caffe::NetParameter with_loss(const caffe::NetParameter& net, const std::string& path) {
  const NetFile file = net_of_message(net, path);
  const Network network = load_network(file, net_state(Phase::test), declared_source_shapes).network;
  const std::vector<TensorIndex> outputs = network.outputs();
  if (outputs.size() != 1 || net.layer_size() == 0 || net.layer(0).type() != "Input" ||
      (net.layer_size() > 1 && net.layer(1).type() == "Input"))
    throw UserError(fmt::format(
        "{}: a loss needs a net of one input and one output, this one has {} outputs; add the losses to the "
        "written prototxt by hand",
        path, outputs.size()));
  const Network::Tensor& output = network.tensors()[outputs[0]];
  if (output.shape.rank() < 2)
    throw UserError(fmt::format("{}: a loss needs an output with classes on axis 1, it is of shape {}", path,
                                output.shape.text()));
  if (net.layer(0).input_param().shape(0).dim_size() == 0)
    throw UserError(
        fmt::format("{}: a loss needs an input with samples on axis 0, this one is a scalar", path));
  caffe::NetParameter body = net;
  const std::string input = body.layer(0).top(0), name = body.layer(0).name();
  const int64_t batch = body.layer(0).input_param().shape(0).dim(0);
  body.mutable_layer()->DeleteSubrange(0, 1);
  const std::string scores = take_scores(body, output.name);
  caffe::NetParameter result;
  result.set_name(net.name());
  add_data(result, name, input, caffe::TRAIN, batch);
  add_data(result, name, input, caffe::TEST, batch);
  for (const caffe::LayerParameter& layer : body.layer()) *result.add_layer() = layer;
  add_head(result, "loss", "SoftmaxWithLoss", scores);
  add_head(result, "accuracy", "Accuracy", scores);
  include_in(*result.mutable_layer(result.layer_size() - 1), caffe::TEST);
  return result;
}

}  // namespace cortado::onnx
