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

std::vector<std::byte> copy_of(ElementPointer values, int64_t count) {
  const auto* bytes = static_cast<const std::byte*>(values.memory);
  return {bytes, bytes + bytes_of(count, values.type).count};
}

void copy_from(const std::vector<std::byte>& bytes, ElementPointer values, int64_t count) {
  ensure(std::ssize(bytes) == bytes_of(count, values.type).count,
         "a message has the length its receiver expects");
  if (count > 0) std::memcpy(values.memory, bytes.data(), bytes.size());
}

int64_t length_of(const MessagePart& part) { return bytes_of(part.count, part.type).count; }

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
      hub_->post(rank_, part.peer, tag_, copy_of({part.memory, part.type}, part.count));
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
      copy_from(*letter, {part.memory, part.type}, part.count);
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
class LocalCollective : public Transmission {
 public:
  LocalCollective(std::shared_ptr<Hub> hub, std::shared_ptr<TrafficCount> traffic, Hub::Key key, int member,
                  ElementPointer values, std::vector<int64_t> counts, RingPhases phases)
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
    volume_ = ring_traffic(ring_schedule(counts_, member_, phases_, int64_t{1} << 40), values_.type);
  }

  void start() override {
    hub_->check();
    ++round_;
    done_ = false;
    started_ = Clock::now();
    hub_->bring(key_, member_, round_,
                phases_.reduce_scatter ? copy_of(values_, total_)
                                       : copy_of(values_ + offsets_[member_], counts_[member_]));
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
      ensure(std::ssize(*all[i]) == bytes_of(total_, values_.type).count,
             "members sum vectors of one length");
      const std::byte* theirs = all[i]->data() + bytes_of(offset, values_.type).count;
      const ElementPointer mine = values_ + offset;
      if (i > 0) {
        add_elements(mine, theirs, count);
      } else if (count > 0) {
        std::memcpy(mine.memory, theirs, static_cast<size_t>(bytes_of(count, mine.type).count));
      }
    }
  }

  std::shared_ptr<Hub> hub_;
  std::shared_ptr<TrafficCount> traffic_;
  Hub::Key key_;
  int member_;
  ElementPointer values_;
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

std::unique_ptr<Transmission> LocalCommunicator::collective(std::span<const int> group, ElementPointer values,
                                                            std::vector<int64_t> counts, RingPhases phases) {
  if (phases.reduce_scatter) ensure_summed(values.type);
  std::vector<int> ranks(group.begin(), group.end());
  int member = group_member(group, rank_);
  Hub::Key key{ranks, made_[ranks]++};
  return std::make_unique<LocalCollective>(hub_, traffic_, std::move(key), member, values, std::move(counts),
                                           phases);
}

std::unique_ptr<Transmission> LocalCommunicator::allreduce(std::span<const int> group, ElementPointer values,
                                                           int64_t count) {
  return collective(group, values, balanced_chunks(count, static_cast<int>(group.size())), {});
}

std::unique_ptr<Transmission> LocalCommunicator::reduce_scatter(std::span<const int> group,
                                                                ElementPointer values,
                                                                std::vector<int64_t> counts) {
  return collective(group, values, std::move(counts), {.allgather = false});
}

std::unique_ptr<Transmission> LocalCommunicator::allgather(std::span<const int> group, ElementPointer values,
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
  const std::span<const std::byte> bytes = std::as_bytes(values);
  hub_->post(rank_, peer, blocking_tag, {bytes.begin(), bytes.end()});
  traffic_->add({static_cast<int64_t>(values.size_bytes()), 0});
}

void LocalCommunicator::receive(int peer, std::span<float> values) {
  copy_from(hub_->wait_for_letter(peer, rank_, blocking_tag), values.data(), std::ssize(values));
  traffic_->add({0, static_cast<int64_t>(values.size_bytes())});
}

double LocalCommunicator::sum(double mine) {
  double sum = 0;
  for (const SharedBytes& bytes : meet(copy_of(&mine, 1))) {
    double theirs = 0;
    copy_from(*bytes, &theirs, 1);
    sum += theirs;
  }
  return sum;
}

}  // namespace cortado
