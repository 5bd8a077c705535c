#include "cortado/job/keeping.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cortado {
namespace {

using namespace std::chrono_literals;

// Until a rank that has not said what it has counts as lost, and until the writing is given up.
constexpr Moment longest_question = 2s, longest_writing = 15s;

bool is_connected(const Peers& peers, int rank) {
  return std::ranges::any_of(
      peers, [&](const auto& peer) { return peer->rank == rank && static_cast<bool>(peer->socket); });
}

}  // namespace

void remove_kept(const std::vector<std::string>& files) {
  std::error_code error;
  for (const std::string& file : files) std::filesystem::remove(file, error);
}

void Keeping::begin(const Peers& peers, int64_t snapshot, Moment now) {
  began_ = now;
  snapshot_ = snapshot;
  for (const auto& peer : peers) {
    if (peer->rank < 0 || !peer->socket) continue;
    ranks_[peer->rank] = {.name = name(*peer)};
    peer->socket.send("hold");
  }
}

bool Keeping::hear(const Peer& peer, const std::string& verb, std::istringstream& words) {
  if (verb != "holds" && verb != "holds-none" && verb != "written" && verb != "unwritten") return false;
  const auto found = ranks_.find(peer.rank);
  std::string text;
  if (verb == "written" || verb.ends_with("none") || verb == "unwritten")
    std::getline(words >> std::ws, text);
  if (verb == "written" && !text.empty()) {
    if (done_) remove_kept({text});  // too late
    if (!done_) result_.files.push_back(text);
  }
  if (found == ranks_.end() || done_) return true;
  Rank& rank = found->second;
  if (verb == "holds")
    rank.heard = static_cast<bool>(words >> rank.began >> rank.first >> rank.last >> rank.agreed);
  if (verb == "holds-none") give_up(text);
  if (verb == "unwritten") give_up(text);
  if (verb == "written") rank.written = true;
  return true;
}

void Keeping::give_up(const std::string& why) {
  remove_kept(result_.files);
  result_ = {.why_not = why};
  done_ = true;
}

bool Keeping::done(const Peers& peers, Moment now) {
  if (done_) return true;
  if (chosen_) return wait_for_files(peers, now);
  const bool late = now - *began_ > longest_question;
  std::erase_if(ranks_, [&](const auto& rank) {
    return !is_connected(peers, rank.first) || (late && !rank.second.heard);
  });
  if (ranks_.empty())
    give_up("no rank is left that trained");
  else if (std::ranges::all_of(ranks_, [](const auto& rank) { return rank.second.heard; }))
    choose(peers, now);
  return done_;
}

// An iteration that one rank knows to be agreed on is, so all that have it whole can give it.
void Keeping::choose(const Peers& peers, Moment now) {
  int64_t first = 0, agreed = 0, began = 0, last = ranks_.begin()->second.last;
  std::vector<int> numbers;
  for (const auto& [number, rank] : ranks_) {
    began = std::max(began, rank.began);
    first = std::max(first, rank.first);
    last = std::min(last, rank.last);
    agreed = std::max(agreed, rank.agreed);
    numbers.push_back(number);
  }
  const int64_t iteration = std::min(agreed, last);
  if (iteration <= std::max(began, snapshot_)) return give_up("");
  if (iteration < first)
    return give_up(fmt::format("they have no iteration in common (one has {}, another {})", last, first));
  chosen_ = now;
  result_.iteration = iteration;
  for (const auto& peer : peers)
    if (ranks_.contains(peer->rank) && peer->socket)
      peer->socket.send(fmt::format("write {} {}", iteration, fmt::join(numbers, " ")));
}

bool Keeping::wait_for_files(const Peers& peers, Moment now) {
  bool all = true;
  for (const auto& [number, rank] : ranks_) {
    if (rank.written) continue;
    all = false;
    if (!is_connected(peers, number))
      give_up(fmt::format("{} is gone, too", rank.name));
    else if (now - *chosen_ > longest_writing)
      give_up(fmt::format("{} has not written what it has within {} s", rank.name, longest_writing / 1s));
    if (done_) return true;
  }
  if (!all) return false;
  for (const std::string& file : result_.files) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) continue;
    give_up(fmt::format("{} cannot be seen from here", std::string(file)));
    return true;
  }
  return done_ = true;
}

}  // namespace cortado
