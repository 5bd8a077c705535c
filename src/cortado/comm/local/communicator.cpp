#include "cortado/comm/local/communicator.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "cortado/base/error.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int blocking_tag = 30000;  // beyond those of exchanges

template <typename T>
std::vector<std::byte> bytes_of(const T* values, int64_t count) {
  std::span<const std::byte> bytes = std::as_bytes(std::span(values, static_cast<size_t>(count)));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
void copy_from(const std::vector<std::byte>& bytes, T* values, int64_t count) {
  ensure(bytes.size() == static_cast<size_t>(count) * sizeof(T),
         "a message has the length its receiver expects");
  if (count > 0) std::memcpy(values, bytes.data(), bytes.size());
}

int64_t length_of(const MessagePart& part) { return cortado::bytes_of(part.count, part.type).count; }

class LocalExchange : public Transmission {
 public:
  LocalExchange(std::shared_ptr<Hub> hub, std::shared_ptr<TrafficCount> traffic, int rank,
                std::vector<MessagePart> sends, std::vector<MessagePart> receives, int tag)
      : hub_(std::move(hub)),
        traffic_(std::move(traffic)),
        rank_(rank),
        sends_(std::move(sends)),
        receives_(std::move(receives)),
        tag_(tag) {}

  void start() override {
    hub_->check();
    arrived_ = 0;
    started_ = Clock::now();
    for (const MessagePart& part : sends_) {
      const auto* bytes = static_cast<const std::byte*>(part.memory);
      hub_->post(rank_, part.peer, tag_, bytes_of(bytes, length_of(part)));
      traffic_->add({length_of(part), 0});
    }
    for (const MessagePart& part : receives_) traffic_->add({0, length_of(part)});
  }

  bool test() override {
    hub_->check();
    for (; arrived_ < receives_.size(); ++arrived_) {
      const MessagePart& part = receives_[arrived_];
      auto letter = hub_->take(part.peer, rank_, tag_);
      if (!letter) {
        hub_->check_patience(started_, part.peer, rank_);
        return false;
      }
      copy_from(*letter, static_cast<std::byte*>(part.memory), length_of(part));
    }
    return true;
  }

 private:
  std::shared_ptr<Hub> hub_;
  std::shared_ptr<TrafficCount> traffic_;
  int rank_;
  std::vector<MessagePart> sends_, receives_;
  int tag_;
  size_t arrived_ = 0;  // receives, in their order
  Clock::time_point started_;
};

// Every member brings its values, or its chunk where nothing is summed; then each takes what it needs.
template <typename T>
class LocalCollective : public Transmission {
 public:
  LocalCollective(std::shared_ptr<Hub> hub, std::shared_ptr<TrafficCount> traffic, Hub::Key key, int member,
                  T* values, std::vector<int64_t> counts, RingPhases phases)
      : hub_(std::move(hub)),
        traffic_(std::move(traffic)),
        key_(std::move(key)),
        member_(member),
        values_(values),
        counts_(std::move(counts)),
        phases_(phases) {
    for (int64_t count : counts_) {
      offsets_.push_back(total_);
      total_ += count;
    }
    volume_ = ring_traffic(ring_schedule(counts_, member_, phases_, int64_t{1} << 40), sizeof(T));
  }

  void start() override {
    hub_->check();
    ++round_;
    done_ = false;
    started_ = Clock::now();
    hub_->bring(key_, member_, round_,
                phases_.reduce_scatter ? bytes_of(values_, total_)
                                       : bytes_of(values_ + offsets_[member_], counts_[member_]));
    traffic_->add(volume_);
  }

  bool test() override {
    if (done_) return true;
    hub_->check();
    auto all = hub_->gather(key_, round_);
    if (!all) {
      hub_->check_patience(started_, key_, round_);
      return false;
    }
    if (!phases_.reduce_scatter) {
      for (size_t i = 0; i < counts_.size(); ++i) {
        if (static_cast<int>(i) != member_) copy_from(*(*all)[i], values_ + offsets_[i], counts_[i]);
      }
    } else if (phases_.allgather) {
      sum(*all, 0, total_);
    } else {
      sum(*all, offsets_[member_], counts_[member_]);
    }
    done_ = true;
    return true;
  }

 private:
  void sum(const std::vector<SharedBytes>& all, int64_t offset, int64_t count) {
    for (size_t i = 0; i < all.size(); ++i) {
      ensure(all[i]->size() == static_cast<size_t>(total_) * sizeof(T), "members sum vectors of one length");
      const T* theirs = reinterpret_cast<const T*>(all[i]->data()) + offset;
      T* mine = values_ + offset;
      if (i == 0) {
        std::copy_n(theirs, count, mine);
      } else {
        if constexpr (std::is_arithmetic_v<T>)
          for (int64_t k = 0; k < count; ++k) mine[k] += theirs[k];
      }
    }
  }

  std::shared_ptr<Hub> hub_;
  std::shared_ptr<TrafficCount> traffic_;
  Hub::Key key_;
  int member_;
  T* values_;
  std::vector<int64_t> counts_, offsets_;
  int64_t total_ = 0;
  RingPhases phases_;
  Traffic volume_;
  int64_t round_ = -1;
  bool done_ = true;
  Clock::time_point started_;
};

}  // namespace

LocalCommunicator::LocalCommunicator(std::shared_ptr<Hub> hub, int rank)
    : hub_(std::move(hub)), rank_(rank), traffic_(std::make_shared<TrafficCount>()) {
  everyone_.group.resize(static_cast<size_t>(hub_->ranks()));
  std::iota(everyone_.group.begin(), everyone_.group.end(), 0);
  everyone_.sequence = -1;
}

std::unique_ptr<Transmission> LocalCommunicator::exchange(std::vector<MessagePart> sends,
                                                          std::vector<MessagePart> receives, int tag) {
  return std::make_unique<LocalExchange>(hub_, traffic_, rank_, std::move(sends), std::move(receives), tag);
}

template <typename T>
std::unique_ptr<Transmission> LocalCommunicator::collective(std::span<const int> group, T* values,
                                                            std::vector<int64_t> counts, RingPhases phases) {
  std::vector<int> ranks(group.begin(), group.end());
  int member = group_member(group, rank_);
  Hub::Key key{ranks, made_[ranks]++};
  return std::make_unique<LocalCollective<T>>(hub_, traffic_, std::move(key), member, values,
                                              std::move(counts), phases);
}

std::unique_ptr<Transmission> LocalCommunicator::allreduce(std::span<const int> group, float* values,
                                                           int64_t count) {
  return collective(group, values, balanced_chunks(count, static_cast<int>(group.size())), {});
}

std::unique_ptr<Transmission> LocalCommunicator::allreduce(std::span<const int> group, double* values,
                                                           int64_t count) {
  return collective(group, values, balanced_chunks(count, static_cast<int>(group.size())), {});
}

std::unique_ptr<Transmission> LocalCommunicator::reduce_scatter(std::span<const int> group, float* values,
                                                                std::vector<int64_t> counts) {
  return collective(group, values, std::move(counts), {.allgather = false});
}

std::unique_ptr<Transmission> LocalCommunicator::allgather(std::span<const int> group, float* values,
                                                           std::vector<int64_t> counts) {
  return collective(group, values, std::move(counts), {.reduce_scatter = false});
}

std::unique_ptr<Transmission> LocalCommunicator::allgather(std::span<const int> group, bf16* values,
                                                           std::vector<int64_t> counts) {
  return collective(group, values, std::move(counts), {.reduce_scatter = false});
}

std::vector<SharedBytes> LocalCommunicator::meet(std::vector<std::byte> mine) {
  hub_->check();
  int64_t round = meetings_++;
  hub_->bring(everyone_, rank_, round, std::move(mine));
  return hub_->wait_for_all(everyone_, round);
}

void LocalCommunicator::barrier() { meet({}); }

std::vector<std::vector<std::byte>> LocalCommunicator::all_to_all_bytes(std::span<const std::byte> mine) {
  std::vector<std::vector<std::byte>> all;
  for (const SharedBytes& bytes : meet({mine.begin(), mine.end()})) all.push_back(*bytes);
  return all;
}

void LocalCommunicator::send(int peer, std::span<const float> values) {
  hub_->check();
  hub_->post(rank_, peer, blocking_tag, bytes_of(values.data(), static_cast<int64_t>(values.size())));
  traffic_->add({static_cast<int64_t>(values.size_bytes()), 0});
}

void LocalCommunicator::receive(int peer, std::span<float> values) {
  copy_from(hub_->wait_for_letter(peer, rank_, blocking_tag), values.data(),
            static_cast<int64_t>(values.size()));
  traffic_->add({0, static_cast<int64_t>(values.size_bytes())});
}

double LocalCommunicator::sum(double mine) {
  double sum = 0;
  for (const SharedBytes& bytes : meet(bytes_of(&mine, 1))) {
    double theirs = 0;
    copy_from(*bytes, &theirs, 1);
    sum += theirs;
  }
  return sum;
}

}  // namespace cortado
