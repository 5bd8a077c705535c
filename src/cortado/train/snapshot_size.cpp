#include "cortado/train/snapshot_size.h"

#include <fmt/format.h>
#include <limits>
#include <string_view>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/net/declare_net.h"

namespace cortado {
namespace {

// What surrounds the values of a blob: its shape, lengths and tags; generously.
constexpr int64_t around_blob = 128;

int64_t bytes_of(const Network::Parameter& parameter) {
  return bytes_of(parameter.spec.shape, ElementType::f32).count + around_blob;
}

}  // namespace

void check_snapshot_size(const SolverOptions& solver, const LoadedNetwork& net, int rounds) {
  const bool written = solver.snapshot > 0 || solver.snapshot_after_train;
  if (!written || solver.snapshot_format != SnapshotFormat::caffe) return;
  int64_t model = static_cast<int64_t>(net.net.ByteSizeLong()), state = around_blob;
  for (const Network::Node& node : net.network.nodes())
    for (ParameterIndex parameter : node.parameters) model += bytes_of(net.network.parameters()[parameter]);
  for (const Network::Parameter& parameter : net.network.parameters()) state += rounds * bytes_of(parameter);
  const auto refuse_beyond_limit = [&](std::string_view file, int64_t bytes) {
    if (bytes <= std::numeric_limits<int>::max()) return;
    throw UserError(
        fmt::format("{}: snapshot_format: the .{} of this net would have {:.2f} GiB, Caffe's binary files "
                    "hold 2 GiB; give "
                    "the snapshot format HDF5 or cortado",
                    solver.file, file, static_cast<double>(bytes) / 0x1p30));
  };
  refuse_beyond_limit("caffemodel", model);
  refuse_beyond_limit("solverstate", state);
}

}  // namespace cortado
