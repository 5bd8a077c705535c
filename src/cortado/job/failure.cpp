#include "cortado/job/failure.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/job/launcher_words.h"

namespace cortado {
namespace {

// Says how far the job is: an iteration that one rank has ended, all have.
std::string progress_text(const Peers& peers) {
  int64_t last = -1;
  for (const auto& peer : peers) last = std::max(last, peer->iteration);
  return last >= 0 ? fmt::format("last iteration {}", last) : "before its first iteration";
}

// Whether `named` is the host of `peer`: its address, or its name with or without the domain.
bool is_host(const std::string& named, const Peer& peer) {
  const auto first = [](const std::string& name) { return name.substr(0, name.find('.')); };
  return named == peer.address || named == peer.host || first(named) == peer.host ||
         named == first(peer.host);
}

}  // namespace

std::string reason_of(const Failure& failure, const Peers& peers) {
  std::vector<std::string> notes;
  if (!failure.who.empty()) notes.push_back(failure.who);
  const std::string progress = progress_text(peers);
  if (progress.starts_with("last") || (failure.says_progress && failure.who.empty()))
    notes.push_back(progress);
  std::string message = failure.text;
  if (!notes.empty()) message += fmt::format(" ({})", fmt::join(notes, ", "));
  if (!failure.more.empty()) message += "; " + failure.more;
  return message;
}

std::string message_of(const Failure& failure, const Peers& peers, const std::string& snapshot) {
  std::string message = reason_of(failure, peers);
  if (!failure.says_progress) return message;
  return message + "; the job was stopped; " +
         (snapshot.empty() ? "no snapshot was written yet" : "resume with --snapshot " + snapshot);
}

std::string cannot_be_reached(const Peer& peer, const Peers& peers, Moment now, int seconds) {
  std::vector<std::string> names = {name(peer)};
  for (const auto& other : peers)
    if (is_out_of_reach(*other, now, seconds)) names.push_back(name(*other));
  return fmt::format("{} cannot be reached: the host or the network has not answered for {} s",
                     fmt::join(names, ", "), seconds);
}

bool is_out_of_reach(const Peer& peer, Moment now, int seconds) {
  return peer.there() && peer.socket.unreached() && now - peer.heard > std::chrono::seconds(seconds) / 2;
}

std::string host_as_named(const std::vector<std::string>& launcher, const Peer& peer) {
  for (const std::string& host : hosts_named(launcher))
    if (is_host(host, peer)) return host;
  return peer.host;
}

std::vector<std::string> silent_hosts(const std::vector<std::string>& launcher, const Peers& peers) {
  std::vector<std::string> hosts = hosts_named(launcher);
  for (const auto& peer : peers)
    if (peer->rank >= 0) std::erase_if(hosts, [&](const std::string& host) { return is_host(host, *peer); });
  return hosts;
}

std::string missing_ranks(const std::vector<std::string>& launcher, const Peers& peers, int ranks) {
  std::vector<std::string> started;
  std::vector<int> absent;
  const std::vector<std::string> hosts = silent_hosts(launcher, peers);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto peer = std::ranges::find(peers, rank, [](const auto& p) { return p->rank; });
    if (peer == peers.end()) {
      absent.push_back(rank);
      continue;
    }
    started.push_back(name(**peer));
  }
  std::string text = fmt::format("{} of {} ranks have started (launcher '{}')", started.size(), ranks,
                                 fmt::join(launcher, " "));
  if (started.size() > 16) started.resize(16);
  if (!started.empty()) text += fmt::format(": {}; not {}", fmt::join(started, ", "), ranks_text(absent));
  if (!hosts.empty()) text += fmt::format("; nothing has come from {}", fmt::join(hosts, ", "));
  return text;
}

}  // namespace cortado
