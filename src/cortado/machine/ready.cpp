#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"
#include "cortado/machine/file.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

// The nearest first. A program in build/PRESET/ has the sources' folder two above it, one in PREFIX/bin/ has
// PREFIX/share/cortado.
std::vector<fs::path> machine_folders() {
  constexpr int most_levels = 4;
  std::vector<fs::path> folders{"machines"};
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (int level = 0; level < most_levels && folder.has_relative_path(); ++level) {
    folders.push_back(folder / "machines");
    folders.push_back(folder / "share/cortado/machines");
    folder = folder.parent_path();
  }
  return folders;
}

}  // namespace

std::vector<std::string> ready_machines() {
  std::vector<std::string> names;
  for (const fs::path& folder : machine_folders()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

DeviceGraph load_machine(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos)
    return parse_machine(read_file(name_or_path), name_or_path);
  for (const fs::path& folder : machine_folders()) {
    const fs::path path = folder / (name_or_path + ".json");
    std::error_code error;
    if (fs::is_regular_file(path, error)) return parse_machine(read_file(path.string()), path.string());
  }
  const std::vector<std::string> names = ready_machines();
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw UserError(
      fmt::format("there is no machine '{}'{} ({}{}a file that ends in .json)", name_or_path,
                  did_you_mean(name_or_path, known),
                  known.empty() ? "no folder 'machines' was found; give " : "known: " + joined(known),
                  known.empty() ? "" : ", or "));
}

}  // namespace cortado
