#include "cortado/job/stall.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace cortado {
namespace {

constexpr size_t most_reported = 8;

std::string seconds_text(Moment time) {
  return fmt::format("{:.0f} s", static_cast<double>(time.count()) / 1000);
}

std::vector<const Peer*> silent_ranks(const Peers& peers, Moment now, Moment limit) {
  std::vector<const Peer*> silent;
  for (const auto& peer : peers)
    if (peer->there() && now - peer->heard >= limit && !peer->socket.unreached())
      silent.push_back(peer.get());
  std::ranges::sort(silent, {}, &Peer::rank);
  return silent;
}

bool waits_for(const Peer& peer, const std::vector<const Peer*>& others) {
  if (!peer.activity.waits) return false;
  return peer.activity.ranks.empty() || std::ranges::any_of(others, [&](const Peer* other) {
           return std::ranges::find(peer.activity.ranks, other->rank) != peer.activity.ranks.end();
         });
}

// "ranks 0, 1 wait for it in X; rank 3 waits for it in Y".
std::string those_that_wait(const Peers& peers, const std::vector<const Peer*>& silent) {
  std::map<std::string, std::vector<int>> ranks;  // by what they wait in
  for (const auto& peer : peers) {
    if (!peer->there() || std::ranges::find(silent, peer.get()) != silent.end()) continue;
    if (waits_for(*peer, silent)) ranks[peer->activity.text].push_back(peer->rank);
  }
  std::vector<std::string> texts;
  for (auto& [what, waiting] : ranks) {
    std::ranges::sort(waiting);
    texts.push_back(fmt::format("{} {} for {} in {}", ranks_text(waiting),
                                waiting.size() == 1 ? "waits" : "wait", silent.size() == 1 ? "it" : "them",
                                what));
  }
  if (texts.size() > most_reported) texts.resize(most_reported);
  return fmt::format("{}", fmt::join(texts, "; "));
}

// "rank 2 was last heard of computing layer 'conv3' forward": what those that are silent did before.
std::string last_heard(const std::vector<const Peer*>& silent) {
  std::vector<std::string> texts;
  for (const Peer* peer : silent)
    if (texts.size() < most_reported && peer->answered > 0)
      texts.push_back(fmt::format("rank {} was last heard of {}{}", peer->rank,
                                  peer->activity.waits ? "waiting in " : "", peer->activity.text));
  return fmt::format("{}", fmt::join(texts, "; "));
}

Stall of_silent(const Peers& peers, const std::vector<const Peer*>& silent, Moment now) {
  std::vector<std::string> names;
  Moment longest{};
  for (const Peer* peer : silent) {
    longest = std::max(longest, now - peer->heard);
    if (names.size() < most_reported) names.push_back(fmt::format("{} (pid {})", name(*peer), peer->pid));
  }
  if (silent.size() > names.size()) names.push_back(fmt::format("{} more", silent.size() - names.size()));
  const std::string waiting = those_that_wait(peers, silent), last = last_heard(silent);
  return {fmt::format("{} {} not answered for {}", fmt::join(names, ", "),
                      silent.size() == 1 ? "has" : "have", seconds_text(longest)),
          waiting + (waiting.empty() || last.empty() ? "" : "; ") + last};
}

// All wait: nobody is left to bring what they wait for.
Stall of_waiting(std::vector<const Peer*> waiting, Moment now) {
  std::ranges::sort(waiting, {}, &Peer::rank);
  Moment shortest = now;
  std::vector<std::string> texts;
  for (const Peer* peer : waiting) {
    shortest = std::min(shortest, now - peer->moved);
    if (texts.size() >= most_reported) continue;
    texts.push_back(fmt::format(
        "{} (pid {}) waits for {} in {}", name(*peer), peer->pid,
        peer->activity.ranks.empty() ? "all others" : ranks_text(peer->activity.ranks), peer->activity.text));
  }
  if (waiting.size() > texts.size())
    texts.push_back(fmt::format("so do {} more", waiting.size() - texts.size()));
  return {fmt::format("all ranks have waited for each other for {}", seconds_text(shortest)),
          fmt::format("{}", fmt::join(texts, "; "))};
}

}  // namespace

std::optional<Stall> find_stall(const Peers& peers, Moment now, Moment limit) {
  if (!silent_ranks(peers, now, limit).empty())
    return of_silent(peers, silent_ranks(peers, now, limit / 2), now);
  std::vector<const Peer*> waiting;
  for (const auto& peer : peers) {
    if (!peer->there()) {
      // Others go on after it: what they reported before it ended is old.
      if (peer->finished && now - peer->moved < limit) return std::nullopt;
      continue;
    }
    const bool answers = now - peer->heard < limit / 2;
    if (!answers || !peer->activity.waits || now - peer->moved < limit) return std::nullopt;
    waiting.push_back(peer.get());
  }
  if (waiting.empty()) return std::nullopt;
  return of_waiting(std::move(waiting), now);
}

}  // namespace cortado
