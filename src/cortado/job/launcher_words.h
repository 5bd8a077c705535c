#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cortado {

// Words of a command line, separated by spaces; 'single' and "double" quotes keep words together.
std::vector<std::string> split_words(const std::string& line);

// Whether the next word is a list of hosts, as in "-hosts a,b:2", and its entries.
bool is_host_list(const std::string& option);
std::vector<std::string> split_list_of_hosts(const std::string& list);

// The hosts that a launcher's command names (-hosts a,b; --host a:2,b:2; -w a,b; -f FILE), as written there.
std::vector<std::string> hosts_named(const std::vector<std::string>& launcher);

// Separates a launcher's own words about the end of a job (MPICH's, OpenMPI's and UCX's) from what the job's
// ranks print, line by line.
class LauncherWords {
 public:
  // `blocks`: lines between two rules of dashes are OpenMPI's.
  explicit LauncherWords(bool blocks) : blocks_(blocks) {}
  // The part of `text` that is the ranks'. It comes without delay, unless a line may still become the
  // launcher's.
  std::string pass(std::string_view text);
  // The same for what is left, once nothing more comes.
  std::string end();
  // The launcher's.
  const std::string& kept() const { return kept_; }

 private:
  void end_line(std::string& passed);

  const bool blocks_;
  std::string line_;     // not yet known whose
  bool within_ = false;  // a line of the ranks
  bool in_block_ = false;
  std::string kept_;
};

}  // namespace cortado
