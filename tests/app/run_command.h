#pragma once

#include <string>

namespace cortado {

// What a run of the `cortado` command gave.
struct CommandResult {
  int exit_code = -1;  // -1: killed by a signal
  std::string output;  // standard output and error together
};

// Runs `CORTADO_COMMAND ARGUMENTS` by the shell, in `folder`. `prelude` stands before it ("ulimit -f 8;").
CommandResult run_cortado(const std::string& folder, const std::string& arguments,
                          const std::string& prelude = "");

// A new empty folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;  // empty when it is not there
  bool has(const std::string& name) const;
  int count(const std::string& part) const;  // files whose names contain `part`

 private:
  std::string path_;
};

// A net of two classes on generated numbers (DummyData), and a solver for it.
std::string small_net();
std::string small_solver(const std::string& more = "");

}  // namespace cortado
