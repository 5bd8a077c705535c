#include "cortado/train/layer_names.h"

#include <fmt/format.h>
#include <map>
#include <optional>

#include "cortado/base/error.h"

namespace cortado {
namespace {

struct NamedTwice {
  std::string name, where;  // of the second
};

std::optional<NamedTwice> named_twice(const Network& network) {
  std::map<std::string, int> count;
  for (const Network::Node& node : network.nodes()) {
    if (node.parameters.empty() || !node.part_of.empty() || ++count[node.file_name] < 2) continue;
    return NamedTwice{node.file_name, node.where.text()};
  }
  return std::nullopt;
}

}  // namespace

void check_layer_names(const SolverOptions& solver, const Network& train,
                       const std::vector<const Network*>& tests) {
  std::optional<NamedTwice> twice = named_twice(train);
  if (twice && solver.snapshot_format == SnapshotFormat::hdf5) {
    throw UserError(fmt::format(
        "{}: snapshot_format: two layers with parameters are named '{}' (the second: {}), for which "
        "HDF5 has one place; rename one, or use BINARYPROTO",
        solver.file, twice->name, twice->where));
  }
  for (const Network* test : tests) {
    if (!twice) twice = named_twice(*test);
    if (!twice) continue;
    throw UserError(fmt::format(
        "{}: two layers with parameters are named '{}': a test net takes parameters from the training "
        "net by name, and Caffe would give it the wrong ones; rename one",
        twice->where, twice->name));
  }
}

}  // namespace cortado
