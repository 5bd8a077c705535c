#include "cortado/api/convert.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <iterator>

#include "cortado/base/error.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/net/source_override.h"
#include "cortado/onnx/export.h"
#include "cortado/onnx/import.h"
#include "cortado/train/load_without_data.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot.h"
#include "cortado/train/torchvision.h"

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

using Values = IndexedVector<ParameterIndex, std::vector<float>>;

// A net of phase TEST with its weights.
struct WeightedNet {
  LoadedNetwork loaded;
  Values values;
  std::vector<std::string> notices;
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
Values read_values(const Network& network, const std::string& net, const std::string& path,
                   std::vector<std::string>& notices) {
  const Weights weights = read_any_weights(path, network);
  const WeightMatch match = match_weights(network, weights, path, same_name_of(path));
  if (!match.unmatched_layers.empty())
    throw UserError(
        fmt::format("{}: has no weights of layer '{}' of {}; give those that this net was trained to", path,
                    match.unmatched_layers[0], net));
  for (const std::string& layer : match.unused_layers)
    notices.push_back(fmt::format("{}: layer '{}' is not in {}", path, layer, net));
  Values values;
  for (const Blob* blob : match.of_parameter) values.push_back(blob->values);
  return values;
}

Values read_torchvision(const Network& network, const TorchvisionNames& names, const SafetensorsFile& file,
                        const std::string& path, std::vector<std::string>& notices) {
  FromTorchvision read = from_torchvision(network, names, file, path);
  check_finite(collect_weights(network, [&](ParameterIndex p) { return read.values[p]; }), path);
  if (!read.passed_over.empty())
    notices.push_back(fmt::format("{}: {} tensors are of layers that net '{}' has not ({})", path,
                                  read.passed_over.size(), network.name(), read.passed_over[0]));
  return std::move(read.values);
}

WeightedNet read_weighted(const std::string& net, const std::string& weights, const ToOnnxOptions& options) {
  std::vector<std::string> notices;
  WeightedNet result{test_net(net, options, notices), {}, {}};
  const Network& network = result.loaded.network;
  if (!network.parameters().empty()) {
    if (weights.empty()) throw UserError(fmt::format("{}: its layers have weights; give them, too", net));
    result.values = read_values(network, net, weights, notices);
  }
  result.notices = std::move(notices);
  return result;
}

SafetensorsFile tensors_of(const WeightedNet& net) {
  SafetensorsFile file;
  file.metadata = {{"format", "pt"}};
  const Network& network = net.loaded.network;
  for (ParameterIndex p : indices(network.parameters()))
    file.tensors.push_back({network.parameters()[p].name, network.parameters()[p].spec.shape, net.values[p]});
  return file;
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

void write_weights(const WeightedNet& net, const std::string& output) {
  const Network& network = net.loaded.network;
  const auto values = [&](ParameterIndex p) { return net.values[p]; };
  if (output.ends_with(".caffemodel")) {
    write_caffemodel(output, net.loaded.net, collect_weights(network, values));
  } else if (output.ends_with(".h5")) {
    write_weights_hdf5(output, collect_weights(network, values, /*once=*/true));
  } else if (is_safetensors(output)) {
    write_safetensors(output, tensors_of(net));
  } else {
    throw UserError(
        fmt::format("{}: weights are written as .caffemodel, .h5 or .safetensors; name it so", output));
  }
}

// Whether it has a tensor that only torchvision calls so.
bool has_names_of(const SafetensorsFile& file, const TorchvisionNames& names) {
  return std::ranges::any_of(file.tensors, [&](const auto& tensor) {
    return std::ranges::find(names.of_parameter, tensor.name) != names.of_parameter.end();
  });
}

Converted convert_torchvision(const std::string& net, const std::string& weights, const std::string& output,
                              const ToOnnxOptions& options) {
  std::vector<std::string> notices;
  WeightedNet made{test_net(net, options, notices), {}, {}};
  const Network& network = made.loaded.network;
  const TorchvisionNames names = torchvision_names(network);
  SafetensorsFile read;
  if (is_safetensors(weights)) read = read_safetensors(weights, OtherTypes::passed_over);
  if (has_names_of(read, names)) {
    made.values = read_torchvision(network, names, read, weights, notices);
    write_weights(made, output);
  } else {
    if (!is_safetensors(output))
      throw UserError(
          fmt::format("{} has no tensors called as torchvision's, and {} can have none: weights of "
                      "torchvision are .safetensors",
                      weights, output));
    made.values = read_values(network, net, weights, notices);
    write_safetensors(output, to_torchvision(network, names, made.values));
  }
  return {{output}, std::move(notices)};
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
  WeightedNet read = read_weighted(net, weights, options);
  onnx::ExportedModel exported =
      onnx::export_network(read.loaded.network, [&](ParameterIndex p) { return read.values[p]; });
  onnx::write_model(output, exported.model);
  Converted converted{{output}, std::move(read.notices)};
  std::ranges::move(exported.notices, std::back_inserter(converted.notices));
  return converted;
}

Converted convert_weights(const std::string& net, const std::string& weights, const std::string& output,
                          const ToOnnxOptions& options, TensorNames names) {
  if (names == TensorNames::torchvision) return convert_torchvision(net, weights, output, options);
  WeightedNet read = read_weighted(net, weights, options);
  write_weights(read, output);
  return {{output}, std::move(read.notices)};
}

}  // namespace cortado::api
