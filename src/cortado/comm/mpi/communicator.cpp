#include <algorithm>
#include <chrono>
#include <climits>
#include <fmt/format.h>
#include <numeric>

#include "cortado/base/activity.h"
#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/comm/mpi.h"
#include "cortado/comm/mpi/ring.h"
#include "cortado/comm/mpi/world.h"

namespace cortado {
namespace {

// The longest message, in elements. MPI counts in int; and a watcher sees that a message moves only when it
// ends.
constexpr int64_t longest_message = int64_t{1} << 22;
constexpr int ring_tags = 30000;  // MPI has at least 32,768; rings of a group take turns
// Below this the library's tree of few messages is faster than a ring of many (bench/comm_bench.cpp).
constexpr int64_t smallest_ring_bytes = 1 << 16;

// Calls a function of MPI that takes a request as its last argument, and waits for its end.
template <typename Begin, typename... Arguments>
void wait_for_end(Begin begin, Arguments... arguments) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(begin(arguments..., &request));
  wait_for(request);
}

// Persistent requests, started in their order: parts for one peer arrive in it.
class MpiExchange : public Transmission {
 public:
  MpiExchange(std::shared_ptr<MpiWorld> world, const std::vector<MessagePart>& sends,
              const std::vector<MessagePart>& receives, int tag)
      : world_(std::move(world)) {
    if (tag < 0 || tag > world_->largest_tag())
      throw UserError(
          fmt::format("a net of so many layers needs {} tags of messages, this MPI has {}; cut the net over "
                      "fewer layers, or use an MPI with more",
                      int64_t{tag} + 1, int64_t{world_->largest_tag()} + 1));
    for (const MessagePart& part : receives) add(part, tag, MPI_Recv_init, volume_.received);
    for (const MessagePart& part : sends) add(part, tag, MPI_Send_init, volume_.sent);
    indices_.resize(requests_.size());
  }

  // Requests of a failed transmission stay: MPI is not ended then.
  ~MpiExchange() override {
    if (active_) return;
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }

  void start() override {
    active_ = true;
    ended_ = 0;
    world_->traffic().add(volume_);
    for (MPI_Request& request : requests_) check_mpi(MPI_Start(&request));
  }

  bool test() override {
    int ended = 0;
    check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &ended, indices_.data(),
                           MPI_STATUSES_IGNORE));
    if (ended != MPI_UNDEFINED) ended_ += static_cast<size_t>(ended);
    if (ended > 0) count_progress();
    active_ = ended_ < requests_.size();
    return !active_;
  }

 private:
  template <typename Init>
  void add(const MessagePart& part, int tag, Init init, int64_t& bytes) {
    bytes += bytes_of(part.count, part.type).count;
    for (int64_t done = 0; done < part.count; done += longest_message) {
      int count = static_cast<int>(std::min(longest_message, part.count - done));
      requests_.push_back(MPI_REQUEST_NULL);
      check_mpi(init((ElementPointer(part.memory, part.type) + done).memory, count, mpi_type(part.type),
                     part.peer, tag, world_->exchanges(), &requests_.back()));
    }
  }

  std::shared_ptr<MpiWorld> world_;
  std::vector<MPI_Request> requests_;
  std::vector<int> indices_;  // of those that a test finds ended
  size_t ended_ = 0;          // requests, since the start
  Traffic volume_;
  bool active_ = false;
};

// MPI's own allreduce, for few values. Counted as a ring's volume, the least that a sum must move.
class MpiAllreduce : public Transmission {
 public:
  MpiAllreduce(std::shared_ptr<MpiWorld> world, const MpiGroup& group, ElementPointer values, int64_t count)
      : world_(std::move(world)),
        comm_(group.comm),
        values_(values),
        count_(static_cast<int>(count)),
        volume_(ring_traffic(ring_schedule(balanced_chunks(count, group.size), group.member, {}, count + 1),
                             values.type)) {}

  void start() override {
    world_->traffic().add(volume_);
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values_.memory, count_, mpi_type(values_.type), MPI_SUM, comm_,
                             &request_));
  }

  bool test() override {
    int complete = 0;
    check_mpi(MPI_Test(&request_, &complete, MPI_STATUS_IGNORE));
    return complete != 0;
  }

 private:
  std::shared_ptr<MpiWorld> world_;
  MPI_Comm comm_;
  ElementPointer values_;
  int count_;
  Traffic volume_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(bool apart, std::function<void()> stuck)
      : world_(
            std::make_shared<MpiWorld>(apart, std::move(stuck), std::chrono::seconds(seconds_to_end_mpi))) {}

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }

  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int tag) override {
    return std::make_unique<MpiExchange>(world_, sends, receives, tag);
  }
  std::unique_ptr<Transmission> allreduce(std::span<const int> ranks, ElementPointer values,
                                          int64_t count) override {
    ensure_summed(values.type);
    MpiGroup& group = world_->group(ranks);
    if (bytes_of(count, values.type).count >= smallest_ring_bytes)
      return ring(group, values, balanced_chunks(count, group.size), {});
    return std::make_unique<MpiAllreduce>(world_, group, values, count);
  }
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                               std::vector<int64_t> counts) override {
    ensure_summed(values.type);
    return ring(world_->group(group), values, counts, {.allgather = false});
  }
  std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                          std::vector<int64_t> counts) override {
    return ring(world_->group(group), values, counts, {.reduce_scatter = false});
  }

  void barrier() override {
    const ActivityScope waiting("a barrier");
    wait_for_end(MPI_Ibarrier, world_->blocking());
  }
  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override;
  void send(int peer, std::span<const float> values) override;
  void receive(int peer, std::span<float> values) override;
  double sum(double mine) override;
  bool reads_device_memory() const override { return mpi_reads_device_memory(); }
  Traffic traffic() const override { return {world_->traffic().sent, world_->traffic().received}; }
  void count(Traffic more) override { world_->traffic().add(more); }

 private:
  std::unique_ptr<Transmission> ring(MpiGroup& group, ElementPointer values,
                                     const std::vector<int64_t>& counts, RingPhases phases) {
    return std::make_unique<MpiRing>(world_, group, group.made++ % ring_tags, values, counts, phases,
                                     world_->segment_bytes());
  }

  std::shared_ptr<MpiWorld> world_;
};

std::vector<std::vector<std::byte>> MpiCommunicator::all_to_all_bytes(std::span<const std::byte> mine) {
  ensure(mine.size() < INT_MAX, "bytes for all ranks fit a message");
  const ActivityScope waiting("an exchange among all ranks");
  int length = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<size_t>(size())), offsets(lengths.size());
  wait_for_end(MPI_Iallgather, &length, 1, MPI_INT, lengths.data(), 1, MPI_INT, world_->blocking());
  ensure(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) < INT_MAX, "bytes of all ranks fit");
  std::exclusive_scan(lengths.begin(), lengths.end(), offsets.begin(), 0);
  std::vector<std::byte> all(static_cast<size_t>(offsets.back() + lengths.back()));
  wait_for_end(MPI_Iallgatherv, mine.data(), length, MPI_BYTE, all.data(), lengths.data(), offsets.data(),
               MPI_BYTE, world_->blocking());
  std::vector<std::vector<std::byte>> of_ranks;
  for (size_t i = 0; i < lengths.size(); ++i)
    of_ranks.emplace_back(all.begin() + offsets[i], all.begin() + offsets[i] + lengths[i]);
  return of_ranks;
}

void MpiCommunicator::send(int peer, std::span<const float> values) {
  const ActivityScope waiting("sending values", peer);
  for (size_t done = 0; done < values.size(); done += longest_message) {
    size_t count = std::min<size_t>(longest_message, values.size() - done);
    wait_for_end(MPI_Isend, values.data() + done, static_cast<int>(count), MPI_FLOAT, peer, 0,
                 world_->blocking());
    count_progress();
  }
  world_->traffic().add({static_cast<int64_t>(values.size_bytes()), 0});
}

void MpiCommunicator::receive(int peer, std::span<float> values) {
  const ActivityScope waiting("receiving values", peer);
  for (size_t done = 0; done < values.size(); done += longest_message) {
    size_t count = std::min<size_t>(longest_message, values.size() - done);
    wait_for_end(MPI_Irecv, values.data() + done, static_cast<int>(count), MPI_FLOAT, peer, 0,
                 world_->blocking());
    count_progress();
  }
  world_->traffic().add({0, static_cast<int64_t>(values.size_bytes())});
}

double MpiCommunicator::sum(double mine) {
  const ActivityScope waiting("a sum over all ranks");
  double total = 0;
  wait_for_end(MPI_Iallreduce, &mine, &total, 1, MPI_DOUBLE, MPI_SUM, world_->blocking());
  return total;
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(bool apart, std::function<void()> stuck) {
  return std::make_unique<MpiCommunicator>(apart, std::move(stuck));
}

}  // namespace cortado
