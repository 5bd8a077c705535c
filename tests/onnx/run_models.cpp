// Runs ONNX models for the scripts that compare them with PyTorch.
//   onnx_run FOLDER...               imports FOLDER/model.onnx, runs it on FOLDER/input.safetensors, writes
//                                    output.safetensors; exports the net to back.onnx, imports that, and
//                                    writes what it gives to again.safetensors; or the error to error.txt
//   onnx_run --net NET.prototxt FOLDER BATCH
//                                    the same of a net with random weights and inputs, which lie in the
//                                    folder afterwards: output.safetensors is of the net itself
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <random>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/source_override.h"
#include "cortado/onnx/export.h"
#include "cortado/train/safetensors.h"

#include "tests/onnx/run_net.h"

namespace cortado::testing {
namespace {

NamedValues read_values(const std::string& path) {
  NamedValues values;
  for (const SafetensorsFile::Tensor& tensor : read_safetensors(path).tensors)
    values[tensor.name] = {tensor.shape, tensor.values};
  return values;
}

void write_values(const std::string& path, const NamedValues& values) {
  SafetensorsFile file;
  for (const auto& [name, blob] : values) file.tensors.push_back({name, blob.shape, blob.values});
  write_safetensors(path, file);
}

// Exports a net, imports what it wrote, and runs that.
void write_back(const std::string& folder, const Network& network, const NamedValues& inputs,
                const std::function<std::vector<float>(ParameterIndex)>& values) {
  const std::string path = folder + "/back.onnx";
  onnx::write_model(path, onnx::export_network(network, values).model);
  const int64_t batch = inputs.begin()->second.shape.rank() > 0 ? inputs.begin()->second.shape[0] : 0;
  const onnx::ImportedNet again = onnx::import_model(onnx::read_model(path), path, {.batch = batch});
  write_values(folder + "/again.safetensors", run_imported(again, inputs));
}

void run_model(const std::string& folder) {
  const std::string path = folder + "/model.onnx";
  const NamedValues inputs = read_values(folder + "/input.safetensors");
  try {
    const onnx::ImportedNet imported = onnx::import_model(onnx::read_model(path), path, {.folder = folder});
    const LoadedNetwork loaded = test_network(imported.net);
    RunnableNet net(loaded.network);
    net.load(imported.weights);
    write_values(folder + "/output.safetensors", net.run(inputs));
    write_net(folder + "/net.prototxt", imported.net);
    write_back(folder, loaded.network, inputs, [&](ParameterIndex p) { return net.values(p); });
  } catch (const UserError& error) {
    write_file_atomically(folder + "/error.txt", error.what());
  }
}

Blob random_blob(const Shape& shape, std::mt19937& random, double low, double high) {
  std::uniform_real_distribution<float> draw(static_cast<float>(low), static_cast<float>(high));
  Blob blob{shape, std::vector<float>(static_cast<size_t>(shape.size()))};
  for (float& value : blob.values) value = draw(random);
  return blob;
}

// Whether a softmax has made most values 0 or 1, whatever the net computed before it.
bool saturated(const NamedValues& outputs) {
  int64_t all = 0, flat = 0;
  for (const auto& [name, blob] : outputs) {
    all += std::ssize(blob.values);
    flat += std::ranges::count_if(blob.values,
                                  [](float value) { return std::abs(value) < 1e-6F || value > 1 - 1e-6F; });
  }
  return 2 * flat > all;
}

// Makes the scores of a net with these weights and inputs so small that its softmax tells them apart.
void calm_scores(const Network& network, RunnableNet& net, const NamedValues& inputs) {
  std::vector<ParameterIndex> matrices;
  for (ParameterIndex p : indices(network.parameters()))
    if (network.parameters()[p].spec.shape.rank() > 1) matrices.push_back(p);
  for (int times = 0; times < 20 && saturated(net.run(inputs)); ++times) {
    std::vector<float> values = net.values(matrices.back());
    for (float& value : values) value *= 0.3F;
    net.set(matrices.back(), values);
  }
}

void run_net(const std::string& prototxt, const std::string& folder, int batch) {
  NetFile file = read_net(prototxt);
  override_batch(file.net, batch);
  const LoadedNetwork loaded = load_network(file, net_state(Phase::test), declared_source_shapes);
  RunnableNet net(loaded.network);
  std::mt19937 random(7);
  for (ParameterIndex p : indices(loaded.network.parameters())) {
    const Network::Parameter& parameter = loaded.network.parameters()[p];
    const double fan =
        static_cast<double>(parameter.spec.shape.size()) /
        static_cast<double>(std::max<int64_t>(1, parameter.spec.shape.rank() ? parameter.spec.shape[0] : 1));
    const bool matrix = parameter.spec.shape.rank() > 1;
    const double bound = matrix ? std::sqrt(6 / fan) : 1.2;
    net.set(p, random_blob(parameter.spec.shape, random, matrix ? -bound : 0.8, bound).values);
  }
  NamedValues inputs;
  for (const Network::Node& node : loaded.network.nodes())
    if (node.layer->is_source())
      for (TensorIndex output : node.outputs)
        inputs[loaded.network.tensors()[output].name] =
            random_blob(loaded.network.tensors()[output].shape, random, -1, 1);
  calm_scores(loaded.network, net, inputs);
  write_values(folder + "/input.safetensors", inputs);
  write_values(folder + "/output.safetensors", net.run(inputs));
  write_back(folder, loaded.network, inputs, [&](ParameterIndex p) { return net.values(p); });
}

}  // namespace
}  // namespace cortado::testing

int main(int count, char** words) {
  using namespace cortado::testing;
  try {
    if (count == 5 && std::strcmp(words[1], "--net") == 0) {
      run_net(words[2], words[3], std::atoi(words[4]));
    } else {
      for (int i = 1; i < count; ++i) run_model(words[i]);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
