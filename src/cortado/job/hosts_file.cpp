#include "cortado/job/hosts_file.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <sstream>
#include <string_view>
#include <utility>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/job/launcher_words.h"

namespace cortado {
namespace {

constexpr int most_ranks_of_host = 4096;

// 0: it is no number of ranks.
int ranks_in(std::string_view text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  const bool sound = error == std::errc() && end == text.data() + text.size();
  return sound && ranks <= most_ranks_of_host ? std::max(0, ranks) : 0;
}

// "a", "a:2", or "a" and "slots=2".
HostRanks host_of(const std::string& name, const std::string& more) {
  constexpr std::string_view slots = "slots=";
  const size_t colon = name.rfind(':');
  HostRanks host{.host = name.substr(0, colon)};
  if (colon != std::string::npos) host.ranks = ranks_in(std::string_view(name).substr(colon + 1));
  if (!more.empty()) host.ranks = more.starts_with(slots) ? ranks_in(more.substr(slots.size())) : 0;
  return host;
}

// srun's list has hosts alone.
bool counts_ranks(const std::string& option) { return option != "-w" && option != "--nodelist"; }

}  // namespace

Hosts read_hosts_file(const std::string& path) {
  Hosts hosts;
  std::istringstream lines(read_file(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, more, rest;
    if (!(words >> name)) continue;
    words >> more;
    const HostRanks host = host_of(name, more);
    if (host.host.empty() || host.host.find(',') != std::string::npos || host.ranks == 0 || words >> rest)
      throw UserError(
          fmt::format("{}:{}: '{}' is no host; give a line such as a or a:2 (ranks)", path, number, line));
    if (std::ranges::find(hosts, host.host, &HostRanks::host) != hosts.end())
      throw UserError(fmt::format("{}:{}: host {} is there twice; give it once, with its ranks", path, number,
                                  host.host));
    hosts.push_back(host);
  }
  if (hosts.empty())
    throw UserError(fmt::format("{}: names no host; give a line such as a:2 for each", path));
  return hosts;
}

int ranks_on(const Hosts& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const HostRanks& host) { return sum + host.ranks; });
}

std::string hosts_text(const Hosts& hosts) {
  std::vector<std::string> entries;
  for (const HostRanks& host : hosts)
    entries.push_back(host.ranks == 1 ? host.host : fmt::format("{}:{}", host.host, host.ranks));
  return fmt::format("{}", fmt::join(entries, ", "));
}

std::optional<std::vector<std::string>> with_hosts(std::vector<std::string> launcher, const Hosts& hosts) {
  for (size_t i = 0; i + 1 < launcher.size(); ++i) {
    if (!is_host_list(launcher[i])) continue;
    std::vector<std::string> entries;
    for (const HostRanks& host : hosts)
      entries.push_back(counts_ranks(launcher[i]) ? fmt::format("{}:{}", host.host, host.ranks) : host.host);
    launcher[i + 1] = fmt::format("{}", fmt::join(entries, ","));
    return launcher;
  }
  return std::nullopt;
}

HostsWatch::HostsWatch(std::string path) : path_(std::move(path)) {
  std::error_code error;
  written_ = std::filesystem::last_write_time(path_, error);
  hosts_ = read_hosts_file(path_);
}

bool HostsWatch::changed() {
  std::error_code error;
  if (path_.empty()) return false;
  const auto written = std::filesystem::last_write_time(path_, error);
  if (error || written == written_) return false;
  try {
    hosts_ = read_hosts_file(path_);
  } catch (const UserError&) {
    return false;
  }
  written_ = written;
  return true;
}

}  // namespace cortado
