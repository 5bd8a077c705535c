#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cortado {

// What the name of a file says of it: "jpg", "png", or "" for all others.
std::string image_format_of(const std::string& path);

// The JPEG and PNG files right below a folder, or its folders; by name. Throws UserError when the folder
// cannot be read.
std::vector<std::filesystem::path> image_files_in(const std::filesystem::path& folder);
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

}  // namespace cortado
