#pragma once

#include <string>
#include <vector>

namespace cortado {

// A database that is being made. It grows in a folder of a name that nobody has, beside its own, and gets its
// own name in finish(), so that a failed or killed import leaves what was there, whole. Without finish() what
// was made goes.
class DatabaseFolder {
 public:
  // A database of ours at `path` holds these files and no others.
  static constexpr const char *data = "data.mdb", *lock = "lock.mdb", *labels = "labels.txt",
                              *list = "list.txt";

  // Throws UserError when something is at `path`, unless `replace` and that is an empty folder or one that
  // `cortado data` made; never when it is the working folder or lies above it, or is or holds one of
  // `inputs`. Folders on the way to `path` are made.
  DatabaseFolder(const std::string& path, bool replace, const std::vector<std::string>& inputs);
  ~DatabaseFolder();
  DatabaseFolder(const DatabaseFolder&) = delete;
  DatabaseFolder& operator=(const DatabaseFolder&) = delete;

  const std::string& growing() const { return growing_; }  // where the files are to be written
  void finish();                                           // all of them are there and synced

 private:
  void check_replaced() const;
  void make_parents();
  void remove_growing();
  void take_place();

  std::string path_;  // for messages
  std::vector<std::string> inputs_;
  bool replace_ = false;
  std::string target_, growing_;
  std::vector<std::string> made_parents_;
};

}  // namespace cortado
