#include "cortado/api/convert.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>
#include <memory>

#include "cortado/base/error.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/net/source_override.h"
#include "cortado/onnx/export.h"
#include "cortado/onnx/import.h"
#include "cortado/train/load_without_data.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot.h"

namespace cortado::api {
namespace {

onnx::ImportOptions import_options(const std::string& model, const FromOnnxOptions& options) {
  if (options.batch < 0 || options.batch > INT_MAX)
    throw UserError(fmt::format("batch {}: give 1 or more; 0: as the model says", options.batch));
  onnx::ImportOptions result{.batch = options.batch};
  result.folder = std::filesystem::path(model).parent_path().string();
  if (result.folder.empty()) result.folder = ".";
  if (!options.input_shape.empty())
    result.input_shapes = [options](size_t inputs) {
      return parse_input_shapes(options.input_shape, static_cast<int>(std::max<int64_t>(1, options.batch)),
                                inputs);
    };
  return result;
}

// A net of phase TEST with its weights.
struct WeightedNet {
  LoadedNetwork loaded;
  Weights weights;
  WeightMatch match;
  std::vector<std::string> notices;

  std::vector<float> values(ParameterIndex p) const { return match.of_parameter[p]->values; }
};

LoadedNetwork test_net(const std::string& net, const ToOnnxOptions& options,
                       std::vector<std::string>& notices) {
  if (options.batch < 0 || options.batch > INT_MAX)
    throw UserError(fmt::format("batch {}: give 1 or more; 0: as the file says", options.batch));
  NetFile file = read_net(net);
  notices = file.warnings;
  const caffe::NetState state = net_state(file, cortado::Phase::test, options.level, options.stages);
  change_net(file, state, {.batch = static_cast<int>(options.batch)});
  return load_without_data(std::move(file), state, options.input_shape, static_cast<int>(options.batch));
}

// Throws UserError where the file lacks weights of the net.
std::unique_ptr<WeightedNet> read_weighted(const std::string& net, const std::string& weights,
                                           const ToOnnxOptions& options) {
  std::vector<std::string> notices;
  LoadedNetwork loaded = test_net(net, options, notices);
  auto result = std::make_unique<WeightedNet>(WeightedNet{std::move(loaded), {}, {}, std::move(notices)});
  const Network& network = result->loaded.network;
  if (network.parameters().empty()) return result;
  if (weights.empty()) throw UserError(fmt::format("{}: its layers have weights; give them, too", net));
  result->weights = read_any_weights(weights, network);
  result->match = match_weights(network, result->weights, weights, same_name_of(weights));
  if (!result->match.unmatched_layers.empty())
    throw UserError(
        fmt::format("{}: has no weights of layer '{}' of {}; give those that this net was trained to",
                    weights, result->match.unmatched_layers[0], net));
  for (const std::string& layer : result->match.unused_layers)
    result->notices.push_back(fmt::format("{}: layer '{}' is not in {}", weights, layer, net));
  return result;
}

SafetensorsFile tensors_of(const WeightedNet& net) {
  SafetensorsFile file;
  file.metadata = {{"format", "pt"}};
  const Network& network = net.loaded.network;
  for (ParameterIndex p : indices(network.parameters()))
    file.tensors.push_back({network.parameters()[p].name, network.parameters()[p].spec.shape, net.values(p)});
  return file;
}

}  // namespace

Converted from_onnx(const std::string& model, const std::string& prefix, const FromOnnxOptions& options) {
  onnx::ImportedNet imported =
      onnx::import_model(onnx::read_model(model), model, import_options(model, options));
  if (imported.net.name().empty()) imported.net.set_name(std::filesystem::path(prefix).filename().string());
  Converted converted{{prefix + ".prototxt", prefix + ".caffemodel"}, std::move(imported.notices)};
  caffe::NetParameter trained;
  if (options.loss) {
    trained = onnx::with_loss(imported.net, model);
    converted.files.push_back(prefix + "_train_val.prototxt");
  }
  write_net(converted.files[0], imported.net);
  write_caffemodel(converted.files[1], imported.net, imported.weights);
  if (options.loss) write_net(converted.files[2], trained);
  return converted;
}

Converted to_onnx(const std::string& net, const std::string& weights, const std::string& output,
                  const ToOnnxOptions& options) {
  const std::unique_ptr<WeightedNet> read = read_weighted(net, weights, options);
  onnx::ExportedModel exported =
      onnx::export_network(read->loaded.network, [&](ParameterIndex p) { return read->values(p); });
  onnx::write_model(output, exported.model);
  Converted converted{{output}, std::move(read->notices)};
  std::ranges::move(exported.notices, std::back_inserter(converted.notices));
  return converted;
}

Converted convert_weights(const std::string& net, const std::string& weights, const std::string& output,
                          const ToOnnxOptions& options) {
  const std::unique_ptr<WeightedNet> read = read_weighted(net, weights, options);
  const Network& network = read->loaded.network;
  const auto values = [&](ParameterIndex p) { return read->values(p); };
  if (output.ends_with(".caffemodel")) {
    write_caffemodel(output, read->loaded.net, collect_weights(network, values));
  } else if (output.ends_with(".h5")) {
    write_weights_hdf5(output, collect_weights(network, values, /*once=*/true));
  } else if (output.ends_with(".safetensors")) {
    write_safetensors(output, tensors_of(*read));
  } else {
    throw UserError(
        fmt::format("{}: weights are written as .caffemodel, .h5 or .safetensors; name it so", output));
  }
  return {{output}, std::move(read->notices)};
}

}  // namespace cortado::api
