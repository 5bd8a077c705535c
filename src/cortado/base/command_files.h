#pragma once

#include <string>
#include <vector>

namespace cortado {

// Throws UserError naming `what` and `path` unless the folder that `path` lies in is there and can be
// written.
void check_folder_of(const std::string& what, const std::string& path);

// Makes a folder, and those on the way to it, where it is not there. Throws UserError naming `what`.
void make_folder(const std::string& what, const std::string& folder);

// The files that a command reads and writes, checked before it starts: nobody should learn after hours that a
// result cannot be written, or that it took the place of what it was made from.
class CommandFiles {
 public:
  // An empty path is passed over everywhere: an option that was not given. `what` is for messages ("--json").
  void reads(const std::string& path);
  void reads(const std::vector<std::string>& paths);
  void writes(const std::string& what, const std::string& path);
  // A page's folder, made where it is not there; index.html in it is written.
  void writes_page(const std::string& what, const std::string& folder);
  // A folder for new files, made where it is not there.
  void writes_into(const std::string& what, const std::string& folder);

  // Throws UserError: a folder that is not there or cannot be written, an output that is a folder, that is
  // protected against writing, that the command reads, or that another option names, too.
  void check() const;

 private:
  struct Output {
    std::string what, path;
    bool page = false;  // its folder may be made
  };
  struct Folder {
    std::string what, path;
  };
  void check(size_t output) const;

  std::vector<std::string> inputs_;
  std::vector<Output> outputs_;
  std::vector<Folder> folders_;
};

}  // namespace cortado
