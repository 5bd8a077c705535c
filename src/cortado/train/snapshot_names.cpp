#include "cortado/train/snapshot_names.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>

#include "cortado/base/error.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view before_number = "_iter_";

std::vector<std::string_view> endings_of(SnapshotFormat format) {
  switch (format) {
    case SnapshotFormat::cortado:
      return {".safetensors"};
    case SnapshotFormat::caffe:
      return {".caffemodel", ".solverstate"};
    case SnapshotFormat::hdf5:
      return {".caffemodel.h5", ".solverstate.h5"};
  }
  return {};
}

bool is_resumed_from(const SnapshotName& name) {
  return name.ending == ".safetensors" || name.ending == ".solverstate" || name.ending == ".solverstate.h5";
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string snapshot_file(const std::string& prefix, int64_t iteration, const std::string& ending) {
  return fmt::format("{}{}{}{}", prefix, before_number, iteration, ending);
}

std::optional<SnapshotName> parse_snapshot_name(const std::string& path) {
  const size_t at = path.rfind(before_number);
  if (at == std::string::npos) return std::nullopt;
  SnapshotName name{.prefix = path.substr(0, at)};
  const char *begin = path.data() + at + before_number.size(), *end = path.data() + path.size();
  const auto [rest, error] = std::from_chars(begin, end, name.iteration);
  name.ending = std::string(rest, end);
  const bool whole = error == std::errc() && path == snapshot_file(name.prefix, name.iteration, name.ending);
  return whole ? std::optional(name) : std::nullopt;
}

std::vector<std::string> earlier_snapshots(const std::string& path) {
  const std::optional<SnapshotName> own = parse_snapshot_name(path);
  if (!own) return {};
  std::vector<SnapshotName> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(path), error)) {
    // The name as the user wrote it: with the folder in front where he did.
    const std::string beside = (fs::path(path).parent_path() / entry.path().filename()).string();
    const std::optional<SnapshotName> name = parse_snapshot_name(beside);
    if (name && fs::path(name->prefix).filename() == fs::path(own->prefix).filename() &&
        name->iteration < own->iteration && is_resumed_from(*name))
      found.push_back(*name);
  }
  std::ranges::sort(found, [&](const SnapshotName& a, const SnapshotName& b) {
    if (a.iteration != b.iteration) return a.iteration > b.iteration;
    return (a.ending == own->ending) > (b.ending == own->ending);
  });
  std::vector<std::string> files;
  for (const SnapshotName& name : found)
    files.push_back(snapshot_file(name.prefix, name.iteration, name.ending));
  return files;
}

void check_snapshots_spare(const SolverOptions& solver, int64_t first_iteration,
                           const std::vector<std::string>& inputs) {
  const std::vector<std::string_view> endings = endings_of(solver.snapshot_format);
  const fs::path prefix(solver.snapshot_prefix);
  for (const std::string& input : inputs) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(input, error);  // a link is not replaced, what it leads to is
    const auto name = parse_snapshot_name(error ? input : real.string());
    if (!name || fs::path(name->prefix).filename() != prefix.filename() ||
        std::ranges::find(endings, name->ending) == endings.end())
      continue;
    if (!fs::equivalent(folder_of(name->prefix), folder_of(solver.snapshot_prefix), error)) continue;
    if (name->iteration <= first_iteration || name->iteration > solver.max_iterations) continue;
    throw UserError(fmt::format(
        "snapshot_prefix {}: the snapshot of iteration {} would replace {}, which this training starts "
        "from; set snapshot_prefix to another",
        solver.snapshot_prefix, name->iteration, input));
  }
}

std::string weights_beside(const std::string& state) {
  constexpr std::string_view ending = ".solverstate";
  std::string path = state;
  return path.replace(path.rfind(ending), ending.size(), ".caffemodel");
}

}  // namespace cortado
