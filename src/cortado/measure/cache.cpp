#include "cortado/measure/cache.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_folder() {
  if (std::string folder = variable("CORTADO_CACHE"); !folder.empty()) return folder;
  // The specification: a path that is not absolute does not count.
  if (std::string base = variable("XDG_CACHE_HOME"); base.starts_with('/')) return base + "/cortado";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/cortado";
  return "";
}

std::optional<std::string> read_cached(const std::string& name, const Notices& notify) {
  const std::string folder = cache_folder(), path = folder + "/" + name;
  std::error_code error;
  if (folder.empty() || !std::filesystem::exists(path, error)) return std::nullopt;
  try {
    return read_file(path);
  } catch (const UserError& problem) {
    if (notify) notify(problem.what());
    return std::nullopt;
  }
}

void write_cached(const std::string& name, const std::string& content, const Notices& notify) {
  const std::string folder = cache_folder();
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // what fails shows in writing
  try {
    write_file_atomically(folder + "/" + name, content);
  } catch (const UserError& problem) {
    if (notify) notify(fmt::format("measurements are not kept: {}", problem.what()));
  }
}

}  // namespace cortado
