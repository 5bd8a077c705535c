#include <cstring>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/comm/communicator.h"

namespace cortado {
namespace {

// What a rank sends to itself is copied; a sum over one rank is there already.
class SelfCopy : public Transmission {
 public:
  SelfCopy(std::vector<MessagePart> sends, std::vector<MessagePart> receives)
      : sends_(std::move(sends)), receives_(std::move(receives)) {
    ensure(sends_.size() == receives_.size(), "a single rank sends to itself what it receives");
    for (size_t i = 0; i < sends_.size(); ++i) {
      ensure(sends_[i].peer == 0 && receives_[i].peer == 0, "a single rank has no peers");
      ensure(sends_[i].count == receives_[i].count && sends_[i].type == receives_[i].type,
             "a part is sent and received with one length");
    }
  }
  void start() override {
    for (size_t i = 0; i < sends_.size(); ++i) {
      if (sends_[i].count == 0) continue;
      std::memcpy(receives_[i].memory, sends_[i].memory,
                  static_cast<size_t>(bytes_of(sends_[i].count, sends_[i].type).count));
    }
  }
  bool test() override { return true; }

 private:
  std::vector<MessagePart> sends_, receives_;
};

class SingleCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int) override {
    return std::make_unique<SelfCopy>(std::move(sends), std::move(receives));
  }
  std::unique_ptr<Transmission> allreduce(std::span<const int>, ElementPointer values, int64_t) override {
    ensure_summed(values.type);
    return nothing();
  }
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int>, ElementPointer values,
                                               std::vector<int64_t>) override {
    ensure_summed(values.type);
    return nothing();
  }
  std::unique_ptr<Transmission> allgather(std::span<const int>, ElementPointer,
                                          std::vector<int64_t>) override {
    return nothing();
  }

  void barrier() override {}
  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override {
    return {{mine.begin(), mine.end()}};
  }
  void send(int, std::span<const float>) override { throw InternalError("a single rank has no peers"); }
  void receive(int, std::span<float>) override { throw InternalError("a single rank has no peers"); }
  double sum(double mine) override { return mine; }
  Traffic traffic() const override { return {}; }
  void count(Traffic) override {}

 private:
  static std::unique_ptr<Transmission> nothing() {
    return std::make_unique<SelfCopy>(std::vector<MessagePart>{}, std::vector<MessagePart>{});
  }
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() { return std::make_unique<SingleCommunicator>(); }

}  // namespace cortado
