#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace cortado {

using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

// What the ranks of a LocalJob share: letter boxes between two ranks, meetings of a group, and whether one of
// them failed. Letters and contributions are copies that nobody changes any more. Everything is locked.
class Hub {
 public:
  Hub(int ranks, std::chrono::milliseconds patience) : ranks_(ranks), patience_(patience) {}

  int ranks() const { return ranks_; }
  // An empty one of the same size.
  std::shared_ptr<Hub> renewed() const { return std::make_shared<Hub>(ranks_, patience_); }

  // Rank `rank` is gone; from now on check() throws PeerError with its message. The first failure counts.
  void fail(int rank, const std::string& message);
  void check() const;

  void post(int from, int to, int tag, std::vector<std::byte> letter);
  // The oldest letter of that box; nothing while it is empty.
  std::optional<std::vector<std::byte>> take(int from, int to, int tag);
  std::vector<std::byte> wait_for_letter(int from, int to, int tag);

  // A meeting: every member of the group brings its bytes once a round. A member comes to the next round
  // after it has seen the contributions of this one, so two rounds at most are under way.
  struct Key {
    std::vector<int> group;
    int64_t sequence = 0;  // of the collective among those of its group
    auto operator<=>(const Key&) const = default;
  };
  void bring(const Key& key, int member, int64_t round, std::vector<std::byte> bytes);
  // All members' bytes in the group's order; nothing while someone is missing.
  std::optional<std::vector<SharedBytes>> gather(const Key& key, int64_t round);
  std::vector<SharedBytes> wait_for_all(const Key& key, int64_t round);

  // Throws PeerError when `since` is longer ago than the ranks' patience; names the missing ranks.
  void check_patience(std::chrono::steady_clock::time_point since, const Key& key, int64_t round);
  void check_patience(std::chrono::steady_clock::time_point since, int missing, int me);

 private:
  struct Contribution {
    int64_t round = -1;
    SharedBytes bytes;
  };
  using Rounds = std::vector<Contribution>[2];

  void check_locked() const;
  bool late(std::chrono::steady_clock::time_point since) const;
  std::optional<std::vector<std::byte>> take_locked(int from, int to, int tag);
  std::optional<std::vector<SharedBytes>> gather_locked(const Key& key, int64_t round);
  std::string missing_locked(const Key& key, int64_t round);
  std::vector<Contribution>& contributions(const Key& key, int64_t round);

  const int ranks_;
  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> failed_ = false;
  std::string failure_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> letters_;
  std::map<Key, Rounds> meetings_;
};

}  // namespace cortado
