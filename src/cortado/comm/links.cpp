#include "cortado/comm/links.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <thread>

#include "cortado/base/error.h"
#include "cortado/comm/queued.h"
#include "cortado/comm/values_of_ranks.h"

namespace cortado {
namespace {

using device::Link;

// In place of a link between GPUs, for tests: the queue's thread moves the job's own transmissions.
class EmulatedLinks : public QueuedCommunicator {
 public:
  using QueuedCommunicator::QueuedCommunicator;

  std::unique_ptr<Transmission> exchange(std::vector<MessagePart> sends, std::vector<MessagePart> receives,
                                         int tag) override {
    return queued(job_.exchange(std::move(sends), std::move(receives), tag));
  }
  std::unique_ptr<Transmission> allreduce(std::span<const int> group, ElementPointer values,
                                          int64_t count) override {
    return queued(job_.allreduce(group, values, count));
  }
  std::unique_ptr<Transmission> reduce_scatter(std::span<const int> group, ElementPointer values,
                                               std::vector<int64_t> counts) override {
    return queued(job_.reduce_scatter(group, values, std::move(counts)));
  }
  std::unique_ptr<Transmission> allgather(std::span<const int> group, ElementPointer values,
                                          std::vector<int64_t> counts) override {
    return queued(job_.allgather(group, values, std::move(counts)));
  }

 private:
  std::unique_ptr<Transmission> queued(std::shared_ptr<Transmission> of_job) {
    return transmission([of_job = std::move(of_job)] {
      of_job->start();
      while (!of_job->test()) std::this_thread::yield();
    });
  }
};

}  // namespace

std::string_view name_of(Way way) {
  switch (way) {
    case Way::host:
      return "memory of the host";
    case Way::staging:
      return "pinned memory of the host";
    case Way::device_mpi:
      return "MPI from the device's memory";
    case Way::link:
      break;
  }
  return "a link between devices";
}

Ways::Ways(std::vector<DeviceFacts> of_ranks, int rank) : of_ranks_(std::move(of_ranks)), rank_(rank) {
  const DeviceFacts& mine = of_ranks_.at(static_cast<size_t>(rank));
  if (!has_link(rank)) return;
  for (int other = 0; other < std::ssize(of_ranks_); ++other)
    if (has_link(other) && of_ranks_[static_cast<size_t>(other)].link == mine.link) linked_.push_back(other);
}

// A device with several ranks has none: NCCL takes each device once.
bool Ways::has_link(int rank) const {
  const DeviceFacts& facts = of_ranks_[static_cast<size_t>(rank)];
  return facts.link != Link::none && std::ranges::count(of_ranks_, facts.unit, &DeviceFacts::unit) == 1;
}

Way Ways::with(int peer) const {
  const DeviceFacts& mine = of_ranks_[static_cast<size_t>(rank_)];
  if (mine.of_host) return Way::host;
  if (std::ranges::binary_search(linked_, peer)) return Way::link;
  return mine.mpi_reads ? Way::device_mpi : Way::staging;
}

Way Ways::of(std::span<const int> group) const {
  if (of_ranks_[static_cast<size_t>(rank_)].of_host) return Way::host;
  return std::ranges::includes(linked_, group) ? Way::link : Way::staging;
}

std::string Ways::obstacle(int peer) const {
  const DeviceFacts &mine = of_ranks_[static_cast<size_t>(rank_)],
                    &theirs = of_ranks_[static_cast<size_t>(peer)];
  if (theirs.of_host) return "its memory is the host's";
  if (mine.link == Link::none) return "this device has no link";
  if (theirs.link != mine.link) return "its device has no such link";
  return "a device of theirs has several ranks";
}

std::vector<std::string> Ways::text() const {
  std::map<std::string, std::vector<int>> peers;  // by way
  for (int peer = 0; peer < std::ssize(of_ranks_); ++peer) {
    if (peer == rank_) continue;
    const Way way = with(peer);
    std::string text(name_of(way));
    if (way == Way::link && of_ranks_[static_cast<size_t>(rank_)].link == Link::nccl) text = "NCCL";
    if (way != Way::link && way != Way::host) text += fmt::format(" ({})", obstacle(peer));
    peers[text].push_back(peer);
  }
  std::vector<std::string> lines;
  for (const auto& [way, ranks] : peers)
    lines.push_back(fmt::format("messages with rank{} {}: {}", ranks.size() == 1 ? "" : "s",
                                fmt::join(ranks, ", "), way));
  return lines;
}

Ways ways_of(Communicator& job, const device::DeviceRuntime& device) {
  struct Fixed {
    bool of_host, mpi_reads;
    Link link;
  };
  const bool can = device.link() != Link::nccl || built_with_nccl();
  const Fixed mine{device.host_accessible(), !device.host_accessible() && job.reads_device_memory(),
                   can ? device.link() : Link::none};
  const std::string unit = device.unit();
  const std::vector<Fixed> fixed = values_of_ranks(job, mine);
  const auto units = job.all_to_all_bytes(std::as_bytes(std::span(unit)));
  std::vector<DeviceFacts> facts;
  for (size_t i = 0; i < fixed.size(); ++i)
    facts.push_back({fixed[i].of_host,
                     fixed[i].link,
                     {reinterpret_cast<const char*>(units[i].data()), units[i].size()},
                     fixed[i].mpi_reads});
  return {std::move(facts), job.rank()};
}

std::unique_ptr<Communicator> make_links(Communicator& job, device::DeviceRuntime& device,
                                         device::Queue& queue, const Ways& ways,
                                         const std::vector<std::vector<int>>& groups) {
  if (built_with_nccl()) {
    const bool mine = device.link() == Link::nccl && ways.linked().size() > 1;
    auto nccl = make_nccl(job, device, queue, mine ? ways.linked() : std::vector<int>{},
                          mine ? groups : std::vector<std::vector<int>>{});
    if (nccl) return nccl;
  }
  if (device.link() != Link::emulated || ways.linked().size() < 2) return nullptr;
  return std::make_unique<EmulatedLinks>(job, device, queue);
}

}  // namespace cortado
