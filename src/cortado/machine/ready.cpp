#include "cortado/machine/ready.h"

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

const fs::path own_folder = "machines";  // of the working directory

}  // namespace

std::vector<std::string> ready_machines() {
  std::vector<std::string> names;
  for (const ReadyMachine& machine : compiled_machines()) names.emplace_back(machine.name);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(own_folder, error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

DeviceGraph load_machine(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos)
    return parse_machine(read_file(name_or_path), name_or_path);
  const fs::path path = own_folder / (name_or_path + ".json");
  std::error_code error;
  if (fs::is_regular_file(path, error)) return parse_machine(read_file(path.string()), path.string());
  for (const ReadyMachine& machine : compiled_machines())
    if (machine.name == name_or_path)
      return parse_machine(std::string(machine.file), path.filename().string());
  const std::vector<std::string> names = ready_machines();
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw UserError(fmt::format("there is no machine '{}'{} (known: {}, or a file that ends in .json)",
                              name_or_path, did_you_mean(name_or_path, known), joined(known)));
}

}  // namespace cortado
