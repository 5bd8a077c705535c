#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cortado {

// One line "PATH LABEL" of an image list; a path may hold spaces.
struct ListedImage {
  std::string path;
  int label = 0;
};

// Throws UserError naming file and line: missing file, no label, empty list. Blank lines are passed over.
std::vector<ListedImage> read_image_list(const std::string& path);

// The same where labels may be missing: a line that does not end in a whole number is a path.
struct NamedImage {
  std::string path;
  std::optional<int> label;
};
std::vector<NamedImage> read_named_images(const std::string& path);

}  // namespace cortado
