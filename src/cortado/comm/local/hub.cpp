#include "cortado/comm/local/hub.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/base/error.h"

namespace cortado {

void Hub::fail(int rank, const std::string& message) {
  {
    std::lock_guard lock(mutex_);
    if (!failed_) failure_ = fmt::format("rank {} failed: {}", rank, message);
    failed_ = true;
  }
  changed_.notify_all();
}

void Hub::check() const {
  if (!failed_) return;
  std::lock_guard lock(mutex_);
  check_locked();
}

void Hub::check_locked() const {
  if (failed_) throw PeerError(failure_);
}

bool Hub::late(std::chrono::steady_clock::time_point since) const {
  return std::chrono::steady_clock::now() - since > patience_;
}

void Hub::post(int from, int to, int tag, std::vector<std::byte> letter) {
  {
    std::lock_guard lock(mutex_);
    letters_[{from, to, tag}].push_back(std::move(letter));
  }
  changed_.notify_all();
}

std::optional<std::vector<std::byte>> Hub::take(int from, int to, int tag) {
  std::lock_guard lock(mutex_);
  return take_locked(from, to, tag);
}

std::optional<std::vector<std::byte>> Hub::take_locked(int from, int to, int tag) {
  auto box = letters_.find({from, to, tag});
  if (box == letters_.end() || box->second.empty()) return std::nullopt;
  std::vector<std::byte> letter = std::move(box->second.front());
  box->second.pop_front();
  return letter;
}

std::vector<std::byte> Hub::wait_for_letter(int from, int to, int tag) {
  std::unique_lock lock(mutex_);
  std::optional<std::vector<std::byte>> letter;
  bool came = changed_.wait_for(lock, patience_, [&] {
    check_locked();
    letter = take_locked(from, to, tag);
    return letter.has_value();
  });
  if (!came) throw PeerError(fmt::format("rank {} waits in vain for rank {}", to, from));
  return std::move(*letter);
}

std::vector<Hub::Contribution>& Hub::contributions(const Key& key, int64_t round) {
  std::vector<Contribution>& contributions = meetings_[key][round % 2];
  contributions.resize(key.group.size());
  return contributions;
}

void Hub::bring(const Key& key, int member, int64_t round, std::vector<std::byte> bytes) {
  auto shared = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  {
    std::lock_guard lock(mutex_);
    contributions(key, round)[static_cast<size_t>(member)] = {round, std::move(shared)};
  }
  changed_.notify_all();
}

std::optional<std::vector<SharedBytes>> Hub::gather(const Key& key, int64_t round) {
  std::lock_guard lock(mutex_);
  return gather_locked(key, round);
}

std::optional<std::vector<SharedBytes>> Hub::gather_locked(const Key& key, int64_t round) {
  std::vector<SharedBytes> all;
  for (const Contribution& contribution : contributions(key, round)) {
    if (contribution.round != round) return std::nullopt;
    all.push_back(contribution.bytes);
  }
  return all;
}

std::vector<SharedBytes> Hub::wait_for_all(const Key& key, int64_t round) {
  std::unique_lock lock(mutex_);
  std::optional<std::vector<SharedBytes>> all;
  bool came = changed_.wait_for(lock, patience_, [&] {
    check_locked();
    all = gather_locked(key, round);
    return all.has_value();
  });
  if (!came) throw PeerError(missing_locked(key, round));
  return std::move(*all);
}

std::string Hub::missing_locked(const Key& key, int64_t round) {
  std::vector<int> missing;
  const std::vector<Contribution>& there = contributions(key, round);
  for (size_t i = 0; i < there.size(); ++i) {
    if (there[i].round != round) missing.push_back(key.group[i]);
  }
  return fmt::format("ranks {} wait in vain for ranks {}", fmt::join(key.group, ","),
                     fmt::join(missing, ","));
}

void Hub::check_patience(std::chrono::steady_clock::time_point since, const Key& key, int64_t round) {
  if (!late(since)) return;
  std::lock_guard lock(mutex_);
  throw PeerError(missing_locked(key, round));
}

void Hub::check_patience(std::chrono::steady_clock::time_point since, int missing, int me) {
  if (late(since)) throw PeerError(fmt::format("rank {} waits in vain for rank {}", me, missing));
}

}  // namespace cortado
