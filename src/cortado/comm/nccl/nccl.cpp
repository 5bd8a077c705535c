// NVIDIA, "NCCL User Guide", sections on communicators, group calls and point-to-point communication. It has
// never run.
#include <algorithm>
#include <cstring>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <map>
#include <nccl.h>
#include <numeric>
#include <set>

#include "cortado/base/activity.h"
#include "cortado/base/error.h"
#include "cortado/comm/links.h"
#include "cortado/comm/queued.h"
#include "cortado/comm/ring.h"

namespace cortado {
namespace {

void check(ncclResult_t result) {
  if (result != ncclSuccess)
    throw PeerError(fmt::format("NCCL: a peer failed: {}", ncclGetErrorString(result)));
}

ncclDataType_t type_of(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return ncclFloat32;
    case ElementType::f64:
      return ncclFloat64;
    case ElementType::bf16:
      return ncclBfloat16;  // moved, never summed
  }
  throw InternalError("an element type that is none");
}

// NCCL's communicators of a device, by the ranks of the job that are in them. The device keeps them.
class NcclGroups {
 public:
  ~NcclGroups() {
    for (auto& [ranks, comm] : comms_) ncclCommDestroy(comm);
  }
  // Makes those that are not there. All ranks of the job call it; they make them in one order.
  void meet(Communicator& job, const std::vector<std::vector<int>>& groups);
  ncclComm_t of(std::span<const int> group) const {
    return comms_.at(std::vector<int>(group.begin(), group.end()));
  }
  // Throws PeerError where one has failed, and ends all its work, so that nobody waits for it.
  void check_peers(ncclComm_t comm) {
    ncclResult_t result = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &result));
    if (result == ncclSuccess || result == ncclInProgress) return;
    std::erase_if(comms_, [&](const auto& entry) { return entry.second == comm; });
    ncclCommAbort(comm);
    check(result);
  }

 private:
  std::map<std::vector<int>, ncclComm_t> comms_;
};

// The groups of all ranks: each is written as its size and its ranks.
std::set<std::vector<int>> union_of(Communicator& job, const std::vector<std::vector<int>>& groups) {
  std::vector<int> mine;
  for (const auto& group : groups) {
    mine.push_back(static_cast<int>(group.size()));
    mine.insert(mine.end(), group.begin(), group.end());
  }
  std::set<std::vector<int>> all;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(mine)))) {
    std::vector<int> theirs(bytes.size() / sizeof(int));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (size_t at = 0; at < theirs.size(); at += static_cast<size_t>(theirs[at]) + 1) {
      const auto first = theirs.begin() + static_cast<std::ptrdiff_t>(at) + 1;
      all.emplace(first, first + theirs[at]);
    }
  }
  return all;
}

void NcclGroups::meet(Communicator& job, const std::vector<std::vector<int>>& groups) {
  std::vector<std::vector<int>> missing;
  for (const auto& group : groups)
    if (!comms_.contains(group)) missing.push_back(group);
  const std::set<std::vector<int>> all = union_of(job, missing);
  std::vector<ncclUniqueId> mine;  // of the groups whose first member this rank is, in their order
  for (const auto& group : all)
    if (group.front() == job.rank()) check(ncclGetUniqueId(&mine.emplace_back()));
  const auto ids = job.all_to_all_bytes(std::as_bytes(std::span(mine)));
  std::map<int, size_t> used;  // of each rank's
  for (const auto& group : all) {
    const size_t number = used[group.front()]++;
    if (!std::ranges::binary_search(group, job.rank())) continue;
    const ActivityScope waiting("the making of a group of GPUs");
    ncclUniqueId id;
    std::memcpy(&id, ids[static_cast<size_t>(group.front())].data() + number * sizeof id, sizeof id);
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, static_cast<int>(group.size()), id, group_member(group, job.rank())));
    comms_.emplace(group, comm);
  }
}

class NcclCommunicator : public QueuedCommunicator {
 public:
  NcclCommunicator(Communicator& job, device::DeviceRuntime& device, device::Queue& queue,
                   std::shared_ptr<NcclGroups> groups, std::vector<int> linked)
      : QueuedCommunicator(job, device, queue), groups_(std::move(groups)), linked_(std::move(linked)) {}

  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int) override {
    const ncclComm_t comm = groups_->of(linked_);
    Traffic volume;
    for (const MessagePart& part : sends) volume.sent += bytes_of(part.count, part.type).count;
    for (const MessagePart& part : receives) volume.received += bytes_of(part.count, part.type).count;
    return checked(comm, volume, [=, this] {
      for (const MessagePart& part : sends)
        check(ncclSend(part.memory, static_cast<size_t>(part.count), type_of(part.type), member(part.peer),
                       comm, stream()));
      for (const MessagePart& part : receives)
        check(ncclRecv(part.memory, static_cast<size_t>(part.count), type_of(part.type), member(part.peer),
                       comm, stream()));
    });
  }

  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override {
    ensure_summed(values.type);
    const ncclComm_t comm = groups_->of(group);
    const auto chunks = balanced_chunks(count, static_cast<int>(group.size()));
    return checked(comm, ring_volume(group, chunks, {}, values.type), [=, this] {
      check(ncclAllReduce(values.memory, values.memory, static_cast<size_t>(count), type_of(values.type),
                          ncclSum, comm, stream()));
    });
  }

  // Chunks may be of unequal lengths, which NCCL's own does not know: a reduce to each member.
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                               std::vector<int64_t> counts) override {
    ensure_summed(values.type);
    const ncclComm_t comm = groups_->of(group);
    const Traffic volume = ring_volume(group, counts, {.allgather = false}, values.type);
    return checked(comm, volume, [=, this, counts = std::move(counts)] {
      each_chunk(values, counts, [&](void* chunk, size_t count, int root) {
        check(ncclReduce(chunk, chunk, count, type_of(values.type), ncclSum, root, comm, stream()));
      });
    });
  }
  std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                          std::vector<int64_t> counts) override {
    const ncclComm_t comm = groups_->of(group);
    const Traffic volume = ring_volume(group, counts, {.reduce_scatter = false}, values.type);
    return checked(comm, volume, [=, this, counts = std::move(counts)] {
      each_chunk(values, counts, [&](void* chunk, size_t count, int root) {
        check(ncclBroadcast(chunk, chunk, count, type_of(values.type), root, comm, stream()));
      });
    });
  }

 private:
  cudaStream_t stream() const { return static_cast<cudaStream_t>(queue_.stream()); }
  int member(int peer) const { return group_member(linked_, peer); }

  template <typename Use>
  static void each_chunk(ElementPointer values, const std::vector<int64_t>& counts, Use&& use) {
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) use(values.memory, static_cast<size_t>(counts[i]), static_cast<int>(i));
      values = values + counts[i];
    }
  }

  // What a ring moves; NCCL may choose another way and does not say.
  Traffic ring_volume(std::span<const int> group, const std::vector<int64_t>& counts, RingPhases phases,
                      ElementType type) const {
    const int64_t whole = std::accumulate(counts.begin(), counts.end(), int64_t{1});  // no message is cut
    return ring_traffic(ring_schedule(counts, group_member(group, rank()), phases, whole), type);
  }

  // All calls of a transmission are one group of NCCL's: none waits for another. `volume`: that it moves.
  std::unique_ptr<Transmission> checked(ncclComm_t comm, Traffic volume, std::function<void()> calls) {
    return transmission(
        [this, volume, calls = std::move(calls)] {
          check(ncclGroupStart());
          calls();
          check(ncclGroupEnd());
          count(volume);
        },
        [groups = groups_, comm] { groups->check_peers(comm); });
  }

  std::shared_ptr<NcclGroups> groups_;
  std::vector<int> linked_;
};

}  // namespace

bool built_with_nccl() { return true; }

std::string nccl_version() {
  int number = 0;
  check(ncclGetVersion(&number));
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::unique_ptr<Communicator> make_nccl(Communicator& job, device::DeviceRuntime& device,
                                        device::Queue& queue, const std::vector<int>& linked,
                                        std::vector<std::vector<int>> groups) {
  const bool mine = linked.size() > 1;
  if (mine && !device.kept_by_links) device.kept_by_links = std::make_shared<NcclGroups>();
  const auto kept =
      mine ? std::static_pointer_cast<NcclGroups>(device.kept_by_links) : std::make_shared<NcclGroups>();
  if (mine) groups.push_back(linked);
  queue.finish();  // NCCL takes the GPU of the calling thread, which is the queue's from here on
  kept->meet(job, groups);
  if (!mine) return nullptr;
  return std::make_unique<NcclCommunicator>(job, device, queue, kept, linked);
}

}  // namespace cortado
