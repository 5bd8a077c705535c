#include "cortado/train/snapshot.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/finite.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/solver_state.h"
#include "cortado/train/kept_state.h"
#include "cortado/train/snapshot_names.h"
#include "cortado/train/snapshot_tensors.h"

namespace cortado {
namespace {

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
Blob take_tensor(SafetensorsFile& file, const std::string& path, const std::string& name,
                 const Shape& shape) {
  SafetensorsFile::Tensor* tensor = file.find(name);
  if (!tensor)
    throw UserError(fmt::format("{}: has no tensor '{}'; it is a snapshot of another net", path, name));
  if (tensor->shape != shape) {
    throw UserError(fmt::format("{}: tensor '{}' has shape {}, the net needs {}", path, name,
                                tensor->shape.text(), shape.text()));
  }
  return {tensor->shape, std::move(tensor->values)};
}

void check_solver(const std::string& path, const std::string& made_by, const std::string& solver) {
  if (made_by == solver) return;
  throw UserError(fmt::format("{}: was made by solver {}, this training uses {}; load it as weights instead",
                              path, made_by, solver));
}

Snapshot read_cortado(const std::string& path, const Network& network, const std::string& solver,
                      int rounds) {
  SafetensorsFile file = read_checked(path);
  Snapshot snapshot = state_in(file, path);
  check_solver(path, snapshot.solver, solver);
  snapshot.history.resize(static_cast<size_t>(rounds));
  for (const auto& parameter : network.parameters()) {
    snapshot.parameters.push_back(take_tensor(file, path, parameter.name, parameter.spec.shape));
    for (int round = 0; round < rounds; ++round) {
      std::string name = history_name(round, parameter.name);
      bool kept = parameter.wants_gradient && file.find(name);
      snapshot.history[static_cast<size_t>(round)].push_back(
          kept ? take_tensor(file, path, name, parameter.spec.shape) : Blob{});
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

Snapshot read_of_its_kind(const std::string& path, const Network& network, const std::string& solver,
                          int rounds) {
  if (!is_safetensors(path)) return read_caffe(path, network, solver, rounds);
  if (!is_kept_state(path)) return read_cortado(path, network, solver, rounds);
  Snapshot snapshot = read_kept_state(path, network, rounds);
  check_solver(path, snapshot.solver, solver);
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
  Snapshot snapshot = read_of_its_kind(path, network, solver, rounds);
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
