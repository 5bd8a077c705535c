#include "cortado/job/peer.h"

#include <algorithm>
#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>

namespace cortado {
namespace {

constexpr size_t most_ranks_named = 16;
constexpr Moment time_to_say_hello = std::chrono::seconds(10);
constexpr std::ptrdiff_t most_strangers = 256;

std::vector<int> parse_ranks(const std::string& text) {
  std::vector<int> ranks;
  std::istringstream numbers(text == "*" ? "" : text);
  for (std::string number; std::getline(numbers, number, ',');) ranks.push_back(std::atoi(number.c_str()));
  return ranks;
}

}  // namespace

void Peer::ask() {
  ++asked;
  socket.send(fmt::format("there? {}", asked));
}

void Peer::hear(std::istringstream& words, Moment now) {
  int question = 0;
  uint64_t counted = 0;
  std::string state, ranks;
  if (!(words >> question >> iteration >> counted >> state >> ranks)) return;
  answered = question;
  heard = now;
  activity = {.waits = state == "waits", .ranks = parse_ranks(ranks), .text = ""};
  std::getline(words >> std::ws, activity.text);
  if (!activity.waits || counted != progress) moved = now;
  progress = counted;
}

bool Peer::is_here(const std::string& token) const {
  if (pid <= 1) return false;
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  return environment.find(fmt::format("{}={}", job_variable, token)) != std::string::npos;
}

void Peer::kill_process(const std::string& token) const {
  if (is_here(token)) kill(pid, SIGKILL);
}

void drop_strangers(Peers& peers, Moment now) {
  const auto stranger = [](const std::unique_ptr<Peer>& peer) { return peer->rank < 0; };
  std::ptrdiff_t too_many = std::ranges::count_if(peers, stranger) - most_strangers;
  std::erase_if(peers, [&](const std::unique_ptr<Peer>& peer) {
    return stranger(peer) && (!peer->socket || too_many-- > 0 || now - peer->came > time_to_say_hello);
  });
}

std::string name(const Peer& peer) { return fmt::format("rank {} on {}", peer.rank, peer.host); }

std::string ranks_text(const std::vector<int>& ranks) {
  if (ranks.size() <= most_ranks_named)
    return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
  return fmt::format("ranks {} and {} more", fmt::join(ranks.begin(), ranks.begin() + most_ranks_named, ", "),
                     ranks.size() - most_ranks_named);
}

}  // namespace cortado
