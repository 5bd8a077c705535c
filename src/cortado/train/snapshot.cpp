#include "cortado/train/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/finite.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/seal.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/safetensors.h"
#include "cortado/train/snapshot_names.h"

namespace cortado {
namespace {

constexpr int format_version = 2;  // 1 had no checksum
constexpr const char* metadata_key = "cortado";

bool is_history(const std::string& tensor) { return tensor.starts_with("history") && tensor.find(':') < 12; }

std::string history_name(int round, const std::string& parameter) {
  return fmt::format("history{}:{}", round, parameter);
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }

// The first value of a snapshot that is not finite: "parameter 'conv1/weight' has the value nan at 3"; empty:
// all are finite.
std::string non_finite_value(const Network& network, const Snapshot& snapshot) {
  auto look = [&](std::string_view what, const IndexedVector<ParameterIndex, Blob>& blobs) -> std::string {
    for (ParameterIndex p : indices(blobs)) {
      const int64_t at = first_non_finite(blobs[p].values);
      if (at >= 0)
        return fmt::format("{} '{}' has the value {} at {}", what, network.parameters()[p].name,
                           blobs[p].values[static_cast<size_t>(at)], at);
    }
    return "";
  };
  std::string found = look("parameter", snapshot.parameters);
  for (const auto& history : snapshot.history)
    if (found.empty()) found = look("the solver's history of parameter", history);
  return found;
}

SafetensorsFile tensors_of(const Network& network, const Snapshot& snapshot) {
  SafetensorsFile file;
  nlohmann::json state{{"version", format_version},
                       {"iteration", snapshot.iteration},
                       {"learning_rate_step", snapshot.learning_rate_step},
                       {"solver", snapshot.solver},
                       {"seed", snapshot.seed},
                       {"positions", snapshot.positions},
                       {"net", network.name()}};
  if (snapshot.reproducible) state["reproducible"] = true;
  file.metadata = {{metadata_key, state.dump()}, {"format", "pt"}};
  auto add = [&](const std::string& name, const Blob& blob) {
    if (!blob.values.empty()) file.tensors.push_back({name, blob.shape, blob.values});
  };
  for (ParameterIndex p : indices(snapshot.parameters)) {
    add(network.parameters()[p].name, snapshot.parameters[p]);
  }
  for (size_t round = 0; round < snapshot.history.size(); ++round) {
    for (ParameterIndex p : indices(snapshot.history[round])) {
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
                        .solver = snapshot.solver,
                        .history = {}};
  for (const auto& round : snapshot.history) {
    for (ParameterIndex p : indices(round)) {
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

// 0: none.
int version_of(const nlohmann::json& state) {
  if (!state.is_object() || !state.contains("version") || !state["version"].is_number_integer()) return 0;
  return state["version"].get<int>();
}

// A file that should have a checksum and has none is damaged where it stood.
SafetensorsFile read_checked(const std::string& path) {
  SafetensorsFile file = read_safetensors(path);
  const auto state = file.metadata.find(metadata_key);
  if (state != file.metadata.end() && !file.metadata.contains(SafetensorsFile::checksum_key) &&
      version_of(nlohmann::json::parse(state->second, nullptr, /*allow_exceptions=*/false)) > 1)
    refuse_damaged(path);
  return file;
}

nlohmann::json state_of(const SafetensorsFile& file, const std::string& path) {
  auto text = file.metadata.find(metadata_key);
  if (text == file.metadata.end()) {
    throw UserError(fmt::format("{}: holds weights but no training state; load it as weights", path));
  }
  nlohmann::json state = nlohmann::json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  const int version = version_of(state);
  if (version < 1 || version > format_version) {
    throw UserError(
        fmt::format("{}: its training state is of version {}, not 1 to {}", path, version, format_version));
  }
  return state;
}

void check_solver(const std::string& path, const std::string& made_by, const std::string& solver) {
  if (made_by == solver) return;
  throw UserError(fmt::format("{}: was made by solver {}, this training uses {}; load it as weights instead",
                              path, made_by, solver));
}

Snapshot read_cortado(const std::string& path, const Network& network, const std::string& solver,
                      int rounds) {
  SafetensorsFile file = read_checked(path);
  nlohmann::json state = state_of(file, path);
  Snapshot snapshot;
  try {
    snapshot.iteration = state.at("iteration").get<int64_t>();
    snapshot.learning_rate_step = state.at("learning_rate_step").get<int>();
    snapshot.solver = state.at("solver").get<std::string>();
    snapshot.seed = state.at("seed").get<uint64_t>();
    snapshot.positions = state.at("positions").get<std::map<std::string, int64_t>>();
    snapshot.reproducible = state.value("reproducible", false);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("{}: its training state is not sound: {}", path, error.what()));
  }
  check_solver(path, snapshot.solver, solver);
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

IndexedVector<ParameterIndex, Blob> all_parameters(const Network& network, const std::string& path) {
  Weights weights = read_any_weights(path, network);
  WeightMatch match = match_weights(network, weights, path, SameName::each);
  if (!match.unmatched_layers.empty()) {
    throw UserError(fmt::format("{}: has no weights of layer '{}'; it is of another net", path,
                                match.unmatched_layers.front()));
  }
  IndexedVector<ParameterIndex, Blob> parameters;
  for (const Blob* blob : match.of_parameter) parameters.push_back(*blob);
  return parameters;
}

// Caffe's own files do not say which solver made them; how much history they hold distinguishes some.
void check_history(const SolverStateFile& state, const std::string& path, const std::string& solver,
                   size_t parameters, size_t rounds) {
  if (!state.solver.empty()) check_solver(path, state.solver, solver);
  const size_t held = state.history.size();
  if (held == rounds * parameters) return;
  const bool other_solver = held == (rounds == 1 ? 2 : 1) * parameters;
  throw UserError(fmt::format(
      "{}: holds {} history tensors, this net of {} parameters with solver {} needs {}; {}", path, held,
      parameters, solver, rounds * parameters,
      other_solver ? "it was made by another solver: load it as weights instead" : "it is of another net"));
}

Snapshot read_caffe(const std::string& path, const Network& network, const std::string& solver, int rounds) {
  SolverStateFile state = read_solver_state(path);
  const size_t count = network.parameters().size(), expected = static_cast<size_t>(rounds) * count;
  check_history(state, path, solver, count, static_cast<size_t>(rounds));
  Snapshot snapshot{.iteration = state.iteration, .learning_rate_step = state.current_step, .solver = solver};
  auto beside =
      std::filesystem::path(path).parent_path() / std::filesystem::path(state.learned_net).filename();
  bool moved = !std::filesystem::exists(state.learned_net) && std::filesystem::exists(beside);
  snapshot.parameters = all_parameters(network, moved ? beside.string() : state.learned_net);
  for (size_t i = 0; i < expected; ++i) {
    if (i % count == 0) snapshot.history.emplace_back();
    const auto& parameter = network.parameters()[ParameterIndex(i % count)];
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
  if (const std::string found = non_finite_value(net.network, snapshot); !found.empty())
    throw UserError(
        fmt::format("iteration {}: {}: no snapshot is written; lower base_lr or set clip_gradients",
                    snapshot.iteration, found));
  const auto named = [&](const char* ending) { return snapshot_file(prefix, snapshot.iteration, ending); };
  if (format == SnapshotFormat::cortado) {
    write_safetensors(named(".safetensors"), tensors_of(net.network, snapshot));
    return named(".safetensors");
  }
  Weights weights = collect_weights(
      net.network, [&](ParameterIndex p) { return snapshot.parameters[p].values; },
      format == SnapshotFormat::hdf5);
  if (format == SnapshotFormat::hdf5) {
    const std::string model = named(".caffemodel.h5"), state = named(".solverstate.h5");
    write_weights_hdf5(model, weights);
    write_solver_state_hdf5(state, solver_state_of(net.network, snapshot, model));
    return state;
  }
  const std::string model = named(".caffemodel"), state = named(".solverstate");
  write_caffemodel(model, net.net, weights);
  write_solver_state(state, solver_state_of(net.network, snapshot, model));
  return state;
}

Snapshot read_snapshot(const std::string& path, const Network& network, const std::string& solver,
                       int rounds) {
  Snapshot snapshot = is_safetensors(path) ? read_cortado(path, network, solver, rounds)
                                           : read_caffe(path, network, solver, rounds);
  if (const std::string found = non_finite_value(network, snapshot); !found.empty())
    throw UserError(fmt::format("{}: {}; resume from an earlier snapshot", path, found));
  return snapshot;
}

FoundSnapshot read_sound_snapshot(const std::string& path, const Network& network, const std::string& solver,
                                  int rounds) {
  std::string fault;
  try {
    return {read_snapshot(path, network, solver, rounds), path, ""};
  } catch (const DamagedFile& error) {
    fault = error.what();
  }
  for (const std::string& earlier : earlier_snapshots(path)) {
    try {
      return {read_snapshot(earlier, network, solver, rounds), earlier, fault};
    } catch (const UserError&) {  // damaged, too, or of another training
    }
  }
  throw DamagedFile(fmt::format("{}; no sound earlier snapshot of its prefix is there", fault));
}

SameName same_name_of(const std::string& path) {
  return is_safetensors(path) ? SameName::each : SameName::first;
}

Weights read_any_weights(const std::string& path, const Network& network) {
  if (!is_safetensors(path)) return read_weights(path);
  SafetensorsFile file = read_checked(path);
  Weights weights;
  std::map<std::string, int> layers_named;
  for (const auto& node : network.nodes()) {
    if (!node.part_of.empty()) continue;
    LayerWeights layer{node.file_name, {}, layers_named[node.file_name]++};
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const auto& parameter = network.parameters()[node.parameters[i]];
      const auto* tensor = file.find(parameter.name);
      if (!tensor) continue;
      const bool owners = tensor->shape == parameter.spec.shape;
      layer.blobs.push_back({owners ? node.parameter_shapes[i] : tensor->shape, tensor->values});
    }
    if (!layer.blobs.empty()) weights.push_back(std::move(layer));
  }
  for (const auto& tensor : file.tensors) {
    const std::string layer = tensor.name.substr(0, tensor.name.rfind('/'));
    const bool known =
        network.node(layer) || std::ranges::any_of(network.parameters(), [&](const auto& parameter) {
          return parameter.name == tensor.name;
        });
    if (known || is_history(tensor.name)) continue;
    if (weights.empty() || weights.back().layer != layer) weights.push_back({layer, {}});
    weights.back().blobs.push_back({tensor.shape, tensor.values});
  }
  check_finite(weights, path);
  return weights;
}

}  // namespace cortado
