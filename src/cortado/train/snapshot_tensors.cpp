#include "cortado/train/snapshot_tensors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cortado/base/error.h"
#include "cortado/net/seal.h"

namespace cortado {
namespace {

constexpr int format_version = 2;  // 1 had no checksum
constexpr const char* metadata_key = "cortado";

// 0: none.
int version_of(const nlohmann::json& state) {
  if (!state.is_object() || !state.contains("version") || !state["version"].is_number_integer()) return 0;
  return state["version"].get<int>();
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

}  // namespace

std::string history_name(int round, const std::string& parameter) {
  return fmt::format("history{}:{}", round, parameter);
}

bool is_history(const std::string& tensor) { return tensor.starts_with("history") && tensor.find(':') < 12; }

std::map<std::string, std::string> state_metadata(const Network& network, const Snapshot& snapshot) {
  nlohmann::json state{{"version", format_version},
                       {"iteration", snapshot.iteration},
                       {"learning_rate_step", snapshot.learning_rate_step},
                       {"solver", snapshot.solver},
                       {"seed", snapshot.seed},
                       {"positions", snapshot.positions},
                       {"net", network.name()}};
  if (snapshot.reproducible) state["reproducible"] = true;
  return {{metadata_key, state.dump()}, {"format", "pt"}};
}

SafetensorsFile tensors_of(const Network& network, const Snapshot& snapshot) {
  SafetensorsFile file;
  file.metadata = state_metadata(network, snapshot);
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

// A file that should have a checksum and has none is damaged where it stood.
SafetensorsFile read_checked(const std::string& path) {
  SafetensorsFile file = read_safetensors(path);
  const auto state = file.metadata.find(metadata_key);
  if (state != file.metadata.end() && !file.metadata.contains(SafetensorsFile::checksum_key) &&
      version_of(nlohmann::json::parse(state->second, nullptr, /*allow_exceptions=*/false)) > 1)
    refuse_damaged(path);
  return file;
}

Snapshot state_in(const SafetensorsFile& file, const std::string& path) {
  const nlohmann::json state = state_of(file, path);
  Snapshot snapshot{.has_positions = true};
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
  return snapshot;
}

}  // namespace cortado
