#include "cortado/comm/tree_sum.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cortado/base/sum_tree.h"
#include "cortado/comm/ring.h"

namespace cortado {
namespace {

class TreeSum : public Transmission {
 public:
  TreeSum(Communicator& communicator, std::span<const int> group, ElementPointer values, int64_t count,
          int tag)
      : shares_(tree_shares(static_cast<int>(group.size()))),
        member_(group_member(group, communicator.rank())) {
    const std::vector<int64_t> chunks = balanced_chunks(count, static_cast<int>(group.size()));
    const int64_t own = chunks[static_cast<size_t>(member_)];
    const int64_t bytes = bytes_of(own, values.type).count;
    addends_memory_.resize(static_cast<size_t>(bytes) * group.size());
    own_count_ = own;
    std::vector<MessagePart> away, in, back, out;
    int64_t at = 0;
    for (size_t m = 0; m < group.size(); ++m) {
      const ElementPointer chunk = values + at;
      const ElementPointer addend(addends_memory_.data() + static_cast<int64_t>(m) * bytes, values.type);
      at += chunks[m];
      if (static_cast<int>(m) == member_) {
        own_ = chunk;
        addends_.push_back(chunk);
        continue;
      }
      addends_.push_back(addend);
      away.push_back({group[m], chunk.memory, chunks[m], values.type});
      in.push_back({group[m], addend.memory, own, values.type});
      out.push_back({group[m], chunk.memory, chunks[m], values.type});
    }
    for (const MessagePart& part : away) back.push_back({part.peer, own_.memory, own, values.type});
    scatter_ = communicator.exchange(std::move(away), std::move(in), tag);
    gather_ = communicator.exchange(std::move(back), std::move(out), tag + 1);
  }

  void start() override {
    phase_ = Phase::scatter;
    scatter_->start();
  }

  bool test() override {
    if (phase_ == Phase::scatter && scatter_->test()) {
      sum();
      phase_ = Phase::gather;
      gather_->start();
    }
    if (phase_ == Phase::gather && gather_->test()) phase_ = Phase::done;
    return phase_ == Phase::done;
  }

 private:
  enum class Phase { scatter, gather, done };

  // The first member's addend becomes the sum, and the own chunk has it in the end.
  void sum() {
    sum_in_tree(shares_,
                [&](size_t i, size_t j) { add_elements(addends_[i], addends_[j].memory, own_count_); });
    if (member_ == 0) return;
    const auto* sum = static_cast<const std::byte*>(addends_[0].memory);
    std::copy_n(sum, bytes_of(own_count_, own_.type).count, static_cast<std::byte*>(own_.memory));
  }

  std::vector<int64_t> shares_;
  int member_;
  int64_t own_count_ = 0;
  ElementPointer own_{nullptr, ElementType::f32};
  std::vector<std::byte> addends_memory_;
  std::vector<ElementPointer> addends_;  // of the own chunk, by member; the own one lies in the values
  std::unique_ptr<Transmission> scatter_, gather_;
  Phase phase_ = Phase::done;
};

// A group of one has its sum.
class NoSum : public Transmission {
  void start() override {}
  bool test() override { return true; }
};

}  // namespace

std::unique_ptr<Transmission> make_tree_sum(Communicator& communicator, std::span<const int> group,
                                            ElementPointer values, int64_t count, int tag) {
  ensure_summed(values.type);
  if (group.size() == 1) return std::make_unique<NoSum>();
  return std::make_unique<TreeSum>(communicator, group, values, count, tag);
}

}  // namespace cortado
