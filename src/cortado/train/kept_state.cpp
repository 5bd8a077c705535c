#include "cortado/train/kept_state.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/finite.h"
#include "cortado/train/snapshot_names.h"
#include "cortado/train/snapshot_tensors.h"

namespace cortado {
namespace {

constexpr const char* kept_key = "cortado_kept";
constexpr std::string_view before_rank = ".kept_", after_rank = ".safetensors";

std::string ending_of(int rank) { return fmt::format("{}{}{}", before_rank, rank, after_rank); }

nlohmann::json box_json(const Box& box) {
  nlohmann::json axes = nlohmann::json::array();
  for (int axis = 0; axis < box.rank(); ++axis) axes.push_back({box[axis].begin, box[axis].end});
  return axes;
}

// The slice that a part says a tensor is. Throws DamagedFile unless it is one of `shape`.
Box box_of(const nlohmann::json& axes, const Shape& shape, const SafetensorsFile::Tensor& tensor,
           const std::string& path) {
  Box box = Box::whole(shape);
  bool sound = axes.is_array() && std::ssize(axes) == box.rank();
  for (int axis = 0; sound && axis < box.rank(); ++axis) {
    const nlohmann::json& range = axes[static_cast<size_t>(axis)];
    sound = range.is_array() && range.size() == 2 && range[0].is_number_unsigned() &&
            range[1].is_number_unsigned();
    if (sound) box[axis] = {range[0].get<int64_t>(), range[1].get<int64_t>()};
  }
  if (!sound || !Box::whole(shape).contains(box) || box.shape() != tensor.shape)
    throw DamagedFile(fmt::format("{}: the slice of tensor '{}' is none of the net's", path, tensor.name));
  return box;
}

// Tensors of the net, put together from slices.
class Whole {
 public:
  Whole(const Network& network, int rounds) {
    for (const auto& parameter : network.parameters()) {
      shapes_[parameter.name] = parameter.spec.shape;
      for (int round = 0; round < rounds && parameter.wants_gradient; ++round)
        shapes_[history_name(round, parameter.name)] = parameter.spec.shape;
    }
  }

  void add(SafetensorsFile::Tensor& tensor, const nlohmann::json& slices, const std::string& path) {
    const auto shape = shapes_.find(tensor.name);
    if (shape == shapes_.end())
      throw DamagedFile(fmt::format("{}: the net has no tensor '{}'", path, tensor.name));
    const Box box = box_of(slices.value(tensor.name, nlohmann::json()), shape->second, tensor, path);
    Filled& filled = filled_[tensor.name];
    filled.blob.shape = shape->second;
    for (const Box& other : filled.boxes)
      if (!other.intersect(box).empty())
        throw DamagedFile(fmt::format("{}: tensor '{}' is in two parts", path, tensor.name));
    filled.boxes.push_back(box);
    filled.elements += box.shape().size();
    if (box == Box::whole(shape->second)) {
      filled.blob.values = std::move(tensor.values);
      return;
    }
    filled.blob.values.resize(static_cast<size_t>(shape->second.size()));
    copy_common(box, tensor.values.data(), Box::whole(shape->second), filled.blob.values.data());
  }

  Blob take(const std::string& name, const std::string& path) {
    const auto filled = filled_.find(name);
    if (filled == filled_.end() || filled->second.elements != shapes_.at(name).size())
      throw DamagedFile(fmt::format("{}: its parts do not have all of tensor '{}'", path, name));
    return std::move(filled->second.blob);
  }

 private:
  struct Filled {
    Blob blob;
    std::vector<Box> boxes;
    int64_t elements = 0;
  };
  std::map<std::string, Shape> shapes_;
  std::map<std::string, Filled> filled_;
};

// What a part's metadata say of it.
nlohmann::json kept_of(const std::map<std::string, std::string>& metadata, const std::string& path) {
  nlohmann::json kept;
  if (const auto found = metadata.find(kept_key); found != metadata.end())
    kept = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  const bool sound = kept.is_object() && kept.contains("ranks") && kept["ranks"].is_array() &&
                     kept.contains("slices") && kept["slices"].is_object();
  if (!sound) throw UserError(fmt::format("{}: does not say which part of a training it is", path));
  return kept;
}

// A part that cannot be read is as good as a damaged one.
template <typename Read>
auto or_damaged(Read&& read) {
  try {
    return read();
  } catch (const UserError& error) {
    throw DamagedFile(error.what());
  }
}

struct PartFile {
  SafetensorsFile file;
  nlohmann::json kept;
};

PartFile read_part(const std::string& path) {
  return or_damaged([&] {
    PartFile part{read_checked(path), {}};
    part.kept = kept_of(part.file.metadata, path);
    return part;
  });
}

}  // namespace

std::string kept_state_file(const std::string& prefix, int64_t iteration, int rank) {
  return snapshot_file(prefix, iteration, ending_of(rank));
}

bool is_kept_state(const std::string& path) {
  const std::optional<SnapshotName> name = parse_snapshot_name(path);
  if (!name || !name->ending.starts_with(before_rank)) return false;
  int rank = -1;
  std::from_chars(name->ending.data() + before_rank.size(), name->ending.data() + name->ending.size(), rank);
  return rank >= 0 && name->ending == ending_of(rank);
}

std::string write_kept_part(const std::string& prefix, const Network& network, KeptPart part) {
  SafetensorsFile file;
  nlohmann::json slices = nlohmann::json::object();
  for (KeptPart::Slice& slice : part.slices) {
    if (first_non_finite(slice.values) >= 0)
      throw UserError(fmt::format("'{}' is not finite in iteration {}", slice.name, part.state.iteration));
    slices[slice.name] = box_json(slice.box);
    file.tensors.push_back({std::move(slice.name), slice.box.shape(), std::move(slice.values)});
  }
  file.metadata = state_metadata(network, part.state);
  file.metadata[kept_key] = nlohmann::json{{"ranks", part.ranks}, {"slices", std::move(slices)}}.dump();
  std::string path = kept_state_file(prefix, part.state.iteration, part.rank);
  write_safetensors(path, file);
  return path;
}

Snapshot read_kept_state(const std::string& path, const Network& network, int rounds) {
  const SnapshotName name = parse_snapshot_name(path).value();
  const nlohmann::json ranks =
      or_damaged([&] { return kept_of(read_safetensors_metadata(path), path)["ranks"]; });
  Whole whole(network, rounds);
  std::optional<Snapshot> state;
  for (const nlohmann::json& rank : ranks) {
    if (!rank.is_number_integer()) throw DamagedFile(fmt::format("{}: a rank is no number", path));
    const std::string file = kept_state_file(name.prefix, name.iteration, rank.get<int>());
    PartFile part = read_part(file);
    Snapshot own = state_in(part.file, file);
    if (!state) state = own;
    if (part.kept["ranks"] != ranks || own.iteration != state->iteration || own.seed != state->seed ||
        own.solver != state->solver)
      throw DamagedFile(fmt::format("{}: is of another state than {}", file, path));
    for (const auto& [layer, position] : own.positions)
      state->positions[layer] = std::max(state->positions[layer], position);
    for (SafetensorsFile::Tensor& tensor : part.file.tensors) whole.add(tensor, part.kept["slices"], file);
  }
  if (!state) throw DamagedFile(fmt::format("{}: has no parts", path));
  state->history.resize(static_cast<size_t>(rounds));
  for (const auto& parameter : network.parameters()) {
    state->parameters.push_back(whole.take(parameter.name, path));
    for (int round = 0; round < rounds; ++round)
      state->history[static_cast<size_t>(round)].push_back(
          parameter.wants_gradient ? whole.take(history_name(round, parameter.name), path) : Blob{});
  }
  return std::move(*state);
}

}  // namespace cortado
