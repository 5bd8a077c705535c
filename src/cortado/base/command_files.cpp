#include "cortado/base/command_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const std::string& what, const std::string& folder, std::errc reason) {
  throw UserError(fmt::format("{} {}: the folder cannot be made: {}", what, folder,
                              std::make_error_code(reason).message()));
}

void check_new_folder(const std::string& what, const std::string& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!error && !fs::exists(fs::symlink_status(there, error)) && there.has_relative_path())
    there = there.parent_path(), error.clear();
  if (!fs::is_directory(there, error)) refuse_folder(what, folder, std::errc::not_a_directory);
  if (access(there.c_str(), W_OK | X_OK) != 0) refuse_folder(what, folder, static_cast<std::errc>(errno));
}

void check_file(const std::string& what, const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw UserError(fmt::format("{} {}: is a folder; give the name of a file", what, path));
  if (access(path.c_str(), F_OK) != 0) return;
  if (access(path.c_str(), W_OK) != 0)
    throw UserError(fmt::format("{} {}: cannot be written: {}", what, path, std::strerror(errno)));
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  if (fs::equivalent(one, other, error)) return true;
  const fs::path whole = fs::weakly_canonical(fs::absolute(one), error);
  return !error && whole == fs::weakly_canonical(fs::absolute(other), error) && !error;
}

}  // namespace

void check_folder_of(const std::string& what, const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw UserError(
        fmt::format("{} {}: there is no folder '{}'; make it first", what, path, folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw UserError(fmt::format("{} {}: folder '{}' cannot be written: {}", what, path, folder.string(),
                                std::strerror(errno)));
}

void make_folder(const std::string& what, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) refuse_folder(what, folder, static_cast<std::errc>(error.value()));
}

void CommandFiles::reads(const std::string& path) {
  if (!path.empty()) inputs_.push_back(path);
}

void CommandFiles::reads(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) reads(path);
}

void CommandFiles::writes(const std::string& what, const std::string& path) {
  if (!path.empty()) outputs_.push_back({what, path});
}

void CommandFiles::writes_page(const std::string& what, const std::string& folder) {
  if (folder.empty()) return;
  writes_into(what, folder);
  outputs_.push_back({what, (fs::path(folder) / "index.html").string(), true});
}

void CommandFiles::writes_into(const std::string& what, const std::string& folder) {
  if (!folder.empty()) folders_.push_back({what, folder});
}

void CommandFiles::check() const {
  for (const auto& [what, path] : folders_) check_new_folder(what, path);
  for (size_t output = 0; output < outputs_.size(); ++output) check(output);
}

void CommandFiles::check(size_t output) const {
  const auto& [what, path, page] = outputs_[output];
  if (!page && !path.starts_with("/dev/")) check_folder_of(what, path);
  check_file(what, path);
  if (path.starts_with("/dev/")) return;
  const fs::path name = fs::path(path).filename();
  const bool there = fs::exists(path);
  for (const std::string& input : inputs_)
    if ((there || fs::path(input).filename() == name) && same_file(path, input))
      throw UserError(fmt::format("{} {}: this command reads that file, too; give another name", what, path));
  for (size_t other = 0; other < output; ++other)
    if (same_file(path, outputs_[other].path))
      throw UserError(
          fmt::format("{} {}: {} names that file, too; give another", what, path, outputs_[other].what));
}

}  // namespace cortado
