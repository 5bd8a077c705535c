#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/exec/executor.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/read_net.h"
#include "cortado/net/weights.h"
#include "cortado/onnx/import.h"

namespace cortado::testing {

using NamedValues = std::map<std::string, Blob>;

// The values as a batch has them: channels last.
inline std::vector<float> channels_last(const Blob& blob) {
  const Strides from = row_major_strides(blob.shape), to = channels_last_strides(blob.shape);
  std::vector<float> values(blob.values.size());
  for (int64_t index = 0; index < blob.shape.size(); ++index) {
    int64_t target = 0;
    for (int axis = 0; axis < blob.shape.rank(); ++axis)
      target += index / from[axis] % blob.shape[axis] * to[axis];
    values[static_cast<size_t>(target)] = blob.values[static_cast<size_t>(index)];
  }
  return values;
}

inline LoadedNetwork test_network(const caffe::NetParameter& net) {
  return load_network(net_of_message(net, "net.prototxt"), net_state(Phase::test), declared_source_shapes);
}

// A network of phase TEST and its parameters, in memory.
class RunnableNet {
 public:
  explicit RunnableNet(const Network& network)
      : network_(network), executor_(network, compile(network), parameters_, sources()) {}

  void load(const Weights& weights) {
    const WeightMatch match = match_weights(network_, weights, "the weights");
    for (ParameterIndex p : indices(match.of_parameter))
      parameters_.set_from_whole(executor_.parameter_entries()[p], match.of_parameter[p]->values);
    parameters_.refresh();
  }
  void set(ParameterIndex p, const std::vector<float>& values) {
    parameters_.set_from_whole(executor_.parameter_entries()[p], values);
    parameters_.refresh();
  }
  std::vector<float> values(ParameterIndex p) const {
    return parameters_.canonical(executor_.parameter_entries()[p]);
  }

  // Values of what no layer reads, for these inputs, by the names of blobs. All are in row-major order.
  NamedValues run(const NamedValues& inputs) {
    given_.clear();
    for (const auto& [name, blob] : inputs) given_[name] = channels_last(blob);
    executor_.run(0);
    NamedValues outputs;
    for (TensorIndex output : network_.outputs())
      outputs[network_.tensors()[output].name] = {network_.tensors()[output].shape,
                                                  executor_.canonical_tensor(output)};
    return outputs;
  }

 private:
  std::map<std::string, BatchSource> sources() {
    std::map<std::string, BatchSource> sources;
    for (const Network::Node& node : network_.nodes()) {
      if (!node.layer->is_source()) continue;
      sources[node.name] = [this, &node] {
        std::vector<const float*> tops;
        for (TensorIndex output : node.outputs)
          tops.push_back(given_.at(network_.tensors()[output].name).data());
        return tops;
      };
    }
    return sources;
  }

  const Network& network_;
  std::map<std::string, std::vector<float>> given_;
  ParameterStore parameters_;
  Executor executor_;
};

// What an imported model gives for these inputs.
inline NamedValues run_imported(const onnx::ImportedNet& imported, const NamedValues& inputs) {
  const LoadedNetwork loaded = test_network(imported.net);
  RunnableNet net(loaded.network);
  net.load(imported.weights);
  return net.run(inputs);
}

}  // namespace cortado::testing
