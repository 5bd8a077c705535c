#include "cortado/train/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/kernels/native/update.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/safetensors.h"

namespace cortado {
namespace {

using Json = nlohmann::json;

constexpr int format_version = 1;
constexpr const char* metadata_key = "cortado";

bool is_history(const std::string& tensor) { return tensor.starts_with("history") && tensor.find(':') < 12; }

std::string history_name(int round, const std::string& parameter) {
  return fmt::format("history{}:{}", round, parameter);
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

void check_finite(const Network& network, const Snapshot& snapshot) {
  for (size_t p = 0; p < snapshot.parameters.size(); ++p) {
    const std::vector<float>& values = snapshot.parameters[p].values;
    int64_t bad = native::first_nonfinite(values.data(), static_cast<int64_t>(values.size()));
    if (bad < 0) continue;
    throw UserError(fmt::format(
        "iteration {}: parameter '{}' has the value {} at {}: no snapshot is written; lower base_lr or set "
        "clip_gradients",
        snapshot.iteration, network.parameters()[p].name, values[static_cast<size_t>(bad)], bad));
  }
}

SafetensorsFile tensors_of(const Network& network, const Snapshot& snapshot) {
  SafetensorsFile file;
  Json state{{"version", format_version},
             {"iteration", snapshot.iteration},
             {"learning_rate_step", snapshot.learning_rate_step},
             {"solver", snapshot.solver},
             {"seed", snapshot.seed},
             {"positions", snapshot.positions},
             {"net", network.name()}};
  file.metadata = {{metadata_key, state.dump()}, {"format", "pt"}};
  auto add = [&](const std::string& name, const Blob& blob) {
    if (!blob.values.empty()) file.tensors.push_back({name, blob.shape, blob.values});
  };
  for (size_t p = 0; p < snapshot.parameters.size(); ++p) {
    add(network.parameters()[p].name, snapshot.parameters[p]);
  }
  for (size_t round = 0; round < snapshot.history.size(); ++round) {
    for (size_t p = 0; p < snapshot.history[round].size(); ++p) {
      add(history_name(static_cast<int>(round), network.parameters()[p].name), snapshot.history[round][p]);
    }
  }
  return file;
}

// Caffe keeps a history for every parameter, trained or not.
SolverStateFile solver_state_of(const Network& network, const Snapshot& snapshot,
                                const std::string& weights) {
  SolverStateFile state{.iteration = static_cast<int>(snapshot.iteration),
                        .current_step = snapshot.learning_rate_step,
                        .learned_net = weights,
                        .history = {}};
  for (const auto& round : snapshot.history) {
    for (size_t p = 0; p < round.size(); ++p) {
      const Shape& shape = network.parameters()[p].spec.shape;
      bool kept = !round[p].values.empty();
      state.history.push_back(kept ? round[p]
                                   : Blob{shape, std::vector<float>(static_cast<size_t>(shape.size()))});
    }
  }
  return state;
}

// The tensor `name`, which must have the shape of the parameter it belongs to.
Blob tensor_named(const SafetensorsFile& file, const std::string& path, const std::string& name,
                  const Shape& shape) {
  const SafetensorsFile::Tensor* tensor = file.find(name);
  if (!tensor)
    throw UserError(fmt::format("{}: has no tensor '{}'; it is a snapshot of another net", path, name));
  if (tensor->shape != shape) {
    throw UserError(fmt::format("{}: tensor '{}' has shape {}, the net needs {}", path, name,
                                tensor->shape.text(), shape.text()));
  }
  return {tensor->shape, tensor->values};
}

Json state_of(const SafetensorsFile& file, const std::string& path) {
  auto text = file.metadata.find(metadata_key);
  if (text == file.metadata.end()) {
    throw UserError(fmt::format("{}: holds weights but no training state; give it as --weights", path));
  }
  Json state = Json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  if (!state.is_object() || state.value("version", 0) != format_version) {
    throw UserError(fmt::format("{}: its training state is not of version {}", path, format_version));
  }
  return state;
}

Snapshot read_cortado(const std::string& path, const Network& network, int rounds) {
  SafetensorsFile file = read_safetensors(path);
  Json state = state_of(file, path);
  Snapshot snapshot;
  try {
    snapshot.iteration = state.at("iteration").get<int64_t>();
    snapshot.learning_rate_step = state.at("learning_rate_step").get<int>();
    snapshot.solver = state.at("solver").get<std::string>();
    snapshot.seed = state.at("seed").get<uint64_t>();
    snapshot.positions = state.at("positions").get<std::map<std::string, int64_t>>();
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("{}: its training state is not sound: {}", path, error.what()));
  }
  snapshot.has_positions = true;
  snapshot.history.resize(static_cast<size_t>(rounds));
  for (const auto& parameter : network.parameters()) {
    snapshot.parameters.push_back(tensor_named(file, path, parameter.name, parameter.spec.shape));
    for (int round = 0; round < rounds; ++round) {
      std::string name = history_name(round, parameter.name);
      bool kept = parameter.wants_gradient && file.find(name);
      snapshot.history[static_cast<size_t>(round)].push_back(
          kept ? tensor_named(file, path, name, parameter.spec.shape) : Blob{});
    }
  }
  return snapshot;
}

std::vector<Blob> all_parameters(const Network& network, const std::string& path) {
  Weights weights = read_any_weights(path, network);
  WeightMatch match = match_weights(network, weights, path);
  if (!match.unmatched_layers.empty()) {
    throw UserError(fmt::format("{}: has no weights of layer '{}'; it is of another net", path,
                                match.unmatched_layers.front()));
  }
  std::vector<Blob> parameters;
  for (const Blob* blob : match.of_parameter) parameters.push_back(*blob);
  return parameters;
}

Snapshot read_caffe(const std::string& path, const Network& network, int rounds) {
  SolverStateFile state = read_solver_state(path);
  size_t count = network.parameters().size(), expected = static_cast<size_t>(rounds) * count;
  if (state.history.size() != expected) {
    throw UserError(fmt::format("{}: holds {} history tensors, this net and solver need {}", path,
                                state.history.size(), expected));
  }
  Snapshot snapshot{.iteration = state.iteration, .learning_rate_step = state.current_step};
  auto beside =
      std::filesystem::path(path).parent_path() / std::filesystem::path(state.learned_net).filename();
  bool moved = !std::filesystem::exists(state.learned_net) && std::filesystem::exists(beside);
  snapshot.parameters = all_parameters(network, moved ? beside.string() : state.learned_net);
  for (size_t i = 0; i < expected; ++i) {
    if (i % count == 0) snapshot.history.emplace_back();
    const auto& parameter = network.parameters()[i % count];
    Blob& blob = state.history[i];
    if (blob.shape.size() != parameter.spec.shape.size()) {
      throw UserError(fmt::format("{}: the history of '{}' has shape {}, the net needs {}", path,
                                  parameter.name, blob.shape.text(), parameter.spec.shape.text()));
    }
    snapshot.history.back().push_back(parameter.wants_gradient ? std::move(blob) : Blob{});
  }
  return snapshot;
}

}  // namespace

std::string write_snapshot(const std::string& prefix, SnapshotFormat format, const LoadedNetwork& net,
                           const Snapshot& snapshot) {
  check_finite(net.network, snapshot);
  std::string base = fmt::format("{}_iter_{}", prefix, snapshot.iteration);
  if (format == SnapshotFormat::cortado) {
    write_safetensors(base + ".safetensors", tensors_of(net.network, snapshot));
    return base + ".safetensors";
  }
  Weights weights =
      collect_weights(net.network, [&](int p) { return snapshot.parameters[static_cast<size_t>(p)].values; });
  if (format == SnapshotFormat::hdf5) {
    write_weights_hdf5(base + ".caffemodel.h5", weights);
    write_solver_state_hdf5(base + ".solverstate.h5",
                            solver_state_of(net.network, snapshot, base + ".caffemodel.h5"));
    return base + ".solverstate.h5";
  }
  write_caffemodel(base + ".caffemodel", net.net, weights);
  write_solver_state(base + ".solverstate", solver_state_of(net.network, snapshot, base + ".caffemodel"));
  return base + ".solverstate";
}

Snapshot read_snapshot(const std::string& path, const Network& network, const std::string& solver,
                       int rounds) {
  if (!is_safetensors(path)) return read_caffe(path, network, rounds);
  Snapshot snapshot = read_cortado(path, network, rounds);
  if (snapshot.solver != solver) {
    throw UserError(
        fmt::format("{}: was made by solver {}, this training uses {}; start it with --weights instead", path,
                    snapshot.solver, solver));
  }
  return snapshot;
}

Weights read_any_weights(const std::string& path, const Network& network) {
  if (!is_safetensors(path)) return read_weights(path);
  SafetensorsFile file = read_safetensors(path);
  Weights weights;
  for (const auto& node : network.nodes()) {
    LayerWeights layer{node.name, {}};
    for (int p : node.parameters) {
      const auto* tensor = file.find(network.parameters()[static_cast<size_t>(p)].name);
      if (tensor) layer.blobs.push_back({tensor->shape, tensor->values});
    }
    if (!layer.blobs.empty()) weights.push_back(std::move(layer));
  }
  for (const auto& tensor : file.tensors) {
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('/'));
    const bool known =
        network.node(layer) >= 0 || std::ranges::any_of(network.parameters(), [&](const auto& parameter) {
          return parameter.name == tensor.name;
        });
    if (known || is_history(tensor.name)) continue;
    if (weights.empty() || weights.back().layer != layer) weights.push_back({layer, {}});
    weights.back().blobs.push_back({tensor.shape, tensor.values});
  }
  return weights;
}

}  // namespace cortado
