#include "cortado/data/image_files.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

template <typename Wanted>
std::vector<fs::path> sorted_entries(const fs::path& folder, Wanted&& wanted) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (wanted(entry)) entries.push_back(entry.path());
  if (error) throw UserError(fmt::format("cannot read folder {}: {}", folder.string(), error.message()));
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::string image_format_of(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpeg" || extension == ".jpg" ? "jpg" : extension == ".png" ? "png" : "";
}

std::vector<fs::path> image_files_in(const fs::path& folder) {
  return sorted_entries(folder, [](const fs::directory_entry& entry) {
    return !image_format_of(entry.path().string()).empty();
  });
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  return sorted_entries(folder, [](const fs::directory_entry& entry) { return entry.is_directory(); });
}

}  // namespace cortado
