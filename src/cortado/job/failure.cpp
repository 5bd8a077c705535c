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
  return named == peer.socket.address() || named == peer.host || first(named) == peer.host ||
         named == first(peer.host);
}

}  // namespace

std::string message_of(const Failure& failure, const Peers& peers, const std::string& snapshot) {
  std::vector<std::string> notes;
  if (!failure.who.empty()) notes.push_back(failure.who);
  const std::string progress = progress_text(peers);
  if (progress.starts_with("last") || (failure.lost_progress && failure.who.empty()))
    notes.push_back(progress);
  std::string message = failure.text;
  if (!notes.empty()) message += fmt::format(" ({})", fmt::join(notes, ", "));
  if (!failure.more.empty()) message += "; " + failure.more;
  if (!failure.lost_progress) return message;
  return message + "; the job was stopped; " +
         (snapshot.empty() ? "no snapshot was written yet" : "resume with --snapshot " + snapshot);
}

std::string cannot_be_reached(const Peer& peer, const Peers& peers, Moment now, int seconds) {
  std::vector<std::string> names = {name(peer)};
  for (const auto& other : peers)
    if (other->there() && other->socket.unreached() && now - other->heard > std::chrono::seconds(seconds) / 2)
      names.push_back(name(*other));
  return fmt::format("{} cannot be reached: the host or the network has not answered for {} s",
                     fmt::join(names, ", "), seconds);
}

std::string missing_ranks(const std::vector<std::string>& launcher, const Peers& peers, int ranks) {
  std::vector<std::string> started;
  std::vector<int> absent;
  std::vector<std::string> hosts = hosts_named(launcher);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto peer = std::ranges::find(peers, rank, [](const auto& p) { return p->rank; });
    if (peer == peers.end()) {
      absent.push_back(rank);
      continue;
    }
    started.push_back(name(**peer));
    std::erase_if(hosts, [&](const std::string& host) { return is_host(host, **peer); });
  }
  std::string text = fmt::format("{} of {} ranks have started (launcher '{}')", started.size(), ranks,
                                 fmt::join(launcher, " "));
  if (started.size() > 16) started.resize(16);
  if (!started.empty()) text += fmt::format(": {}; not {}", fmt::join(started, ", "), ranks_text(absent));
  if (!hosts.empty()) text += fmt::format("; nothing has come from {}", fmt::join(hosts, ", "));
  return text;
}

}  // namespace cortado
