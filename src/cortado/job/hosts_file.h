#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cortado {

struct HostRanks {
  std::string host;
  int ranks = 1;
  bool operator==(const HostRanks&) const = default;
};
using Hosts = std::vector<HostRanks>;

// A file of hosts, one a line: "a", "a:2" or, as for OpenMPI, "a slots=2": with so many ranks, else one. '#'
// begins a comment. Throws UserError: it cannot be read, a line that is none of these, a host twice, no host.
Hosts read_hosts_file(const std::string& path);

int ranks_on(const Hosts& hosts);
// "a:2, b".
std::string hosts_text(const Hosts& hosts);

// The launcher's command with these hosts as its list (-hosts a:2,b; --host a:2,b:1; -w a,b); nothing where
// it has no list.
std::optional<std::vector<std::string>> with_hosts(std::vector<std::string> launcher, const Hosts& hosts);

// Looks whether a hosts file was written anew.
class HostsWatch {
 public:
  HostsWatch() = default;  // of no file
  // Reads it. Throws as read_hosts_file() does.
  explicit HostsWatch(std::string path);
  const Hosts& hosts() const { return hosts_; }  // as last read
  // Reads it again where it was written since; true where it was, and is sound. One that is not sound, or not
  // there, is being written, so it counts once it is.
  bool changed();

 private:
  std::string path_;
  std::filesystem::file_time_type written_{};
  Hosts hosts_;
};

}  // namespace cortado
