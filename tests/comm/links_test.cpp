// Which message goes by which way; and links, whose transmissions are work of a device's queue.
#include "cortado/comm/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/memory.h"

#include "tests/comm/checks.h"

namespace cortado {
namespace {

using device::Link;
using ::testing::ElementsAre;

const DeviceFacts cpu{};
DeviceFacts gpu(const std::string& unit, bool mpi_reads = false, Link link = Link::nccl) {
  return {.of_host = false, .link = link, .unit = unit, .mpi_reads = mpi_reads};
}

TEST(Ways, AreLinksAmongGpusThatHaveOneRankEach) {
  const std::vector<DeviceFacts> ranks{gpu("a"), gpu("b"), cpu, gpu("c")};
  const Ways first(ranks, 0), host(ranks, 2);
  EXPECT_EQ(first.with(1), Way::link);
  EXPECT_EQ(first.with(2), Way::staging);
  EXPECT_EQ(first.with(3), Way::link);
  EXPECT_THAT(first.linked(), ElementsAre(0, 1, 3));
  EXPECT_EQ(first.of(std::vector{0, 1, 3}), Way::link);
  EXPECT_EQ(first.of(std::vector{0, 1, 2}), Way::staging);
  EXPECT_EQ(host.with(0), Way::host);
  EXPECT_EQ(host.of(std::vector{0, 1, 2, 3}), Way::host);
  EXPECT_THAT(first.text(),
              ElementsAre("messages with ranks 1, 3: NCCL",
                          "messages with rank 2: pinned memory of the host (its memory is the host's)"));
}

TEST(Ways, AreStagingForTwoRanksOfOneGpu) {
  const std::vector<DeviceFacts> ranks{gpu("a"), gpu("b"), gpu("a"), gpu("c")};
  const Ways shared(ranks, 0), alone(ranks, 1);
  EXPECT_EQ(shared.with(2), Way::staging);
  EXPECT_EQ(shared.with(1), Way::staging);
  EXPECT_EQ(alone.with(0), Way::staging);
  EXPECT_EQ(alone.with(3), Way::link);
  EXPECT_THAT(alone.text().back(), ::testing::HasSubstr("several ranks"));
}

TEST(Ways, AreMpiFromTheDeviceWhereItReadsThere) {
  const std::vector<DeviceFacts> ranks{gpu("a", true), gpu("a", true), cpu, gpu("b", false, Link::none)};
  const Ways first(ranks, 0), last(ranks, 3);
  for (const int peer : {1, 2, 3}) EXPECT_EQ(first.with(peer), Way::device_mpi) << peer;
  EXPECT_EQ(first.of(std::vector{0, 1}), Way::staging);  // MPI would sum on the host
  EXPECT_EQ(last.with(0), Way::staging);
  EXPECT_THAT(last.text().back(), ::testing::HasSubstr("this device has no link"));
}

// What both ends, and all members of a group, must choose alike.
TEST(Ways, AgreeOnLinks) {
  std::vector<DeviceFacts> kinds{
      cpu, gpu("a"), gpu("b"), gpu("c", true), gpu("d", false, Link::none), gpu("e", false, Link::emulated)};
  for (int number = 0; number < 6 * 6 * 6 * 6; ++number) {
    std::vector<DeviceFacts> ranks;
    for (int left = number, rank = 0; rank < 4; ++rank, left /= 6)
      ranks.push_back(kinds[static_cast<size_t>(left % 6)]);
    std::vector<int> links;
    for (int a = 0; a < 4; ++a) {
      const Ways ways(ranks, a);
      links.push_back(ways.of(std::vector{0, 1, 2, 3}) == Way::link);
      for (int b = 0; b < 4; ++b) {
        if (a == b) continue;
        const bool linked = ways.with(b) == Way::link;
        EXPECT_EQ(linked, Ways(ranks, b).with(a) == Way::link);
        if (!linked) continue;
        EXPECT_NE(ranks[static_cast<size_t>(a)].unit, ranks[static_cast<size_t>(b)].unit);
      }
    }
    EXPECT_TRUE(std::ranges::count(links, links[0]) == 4);
  }
}

TEST(Ways, AreAskedOfAllRanks) {
  LocalJob(3).run([](Communicator& job) {
    std::unique_ptr<device::DeviceRuntime> emulated = device::make_emulated({.links = job.rank() != 1});
    const Ways ways = ways_of(job, job.rank() == 1 ? device::host() : *emulated);
    EXPECT_EQ(ways.with((job.rank() + 1) % 3), job.rank() == 1   ? Way::host
                                               : job.rank() == 0 ? Way::staging
                                                                 : Way::link);
  });
}

// Every check of a communicator, on links of emulated devices.
class LinkedRanks : public ::testing::TestWithParam<std::tuple<int, size_t>> {};

TEST_P(LinkedRanks, Check) {
  const auto [ranks, check] = GetParam();
  LocalJob(ranks).run([&, check = check](Communicator& job) {
    const auto device = device::make_emulated({.links = true});
    const auto queue = device->make_queue();
    const auto links = make_links(job, *device, *queue, ways_of(job, *device), {});
    ASSERT_NE(links, nullptr);
    communicator_checks()[check].run(*links);
  });
}
INSTANTIATE_TEST_SUITE_P(Of, LinkedRanks,
                         ::testing::Combine(::testing::Values(2, 4),
                                            ::testing::Range<size_t>(0, communicator_checks().size())),
                         [](const auto& info) {
                           return communicator_checks()[std::get<1>(info.param)].name + "On" +
                                  std::to_string(std::get<0>(info.param));
                         });

// A transmission comes after what its queue was given before, and before what it is given later.
TEST(Links, AreInTheOrderOfTheirQueue) {
  LocalJob(2).run([](Communicator& job) {
    const auto device = device::make_emulated({.links = true});
    const device::Memory memory({8}, *device);
    device::Queue& queue = device->queue();
    const auto links = make_links(job, *device, queue, ways_of(job, *device), {});
    const std::vector<int> group{0, 1};
    float* const inside = device->for_kernels(memory.floats());
    const auto sum = links->allreduce(group, inside, 2);
    for (int round = 0; round < 3; ++round) {
      queue.fill(memory.floats(), static_cast<float>(job.rank() + 1), 2);
      sum->start();
      queue.launch([inside] { inside[1] *= 10; });
      float values[2] = {};
      queue.copy_out(reinterpret_cast<std::byte*>(values), memory.data(), {8});
      queue.finish();
      EXPECT_TRUE(sum->test());
      EXPECT_EQ(values[0], 3);
      EXPECT_EQ(values[1], 30);
    }
  });
}

TEST(Links, ThrowWhatAPeerLeft) {
  LocalJob job(2);
  EXPECT_THROW(job.run([](Communicator& job) {
    const auto device = device::make_emulated({.links = true});
    const auto links = make_links(job, *device, device->queue(), ways_of(job, *device), {});
    float value = 1;
    const auto sum = links->allreduce(std::vector{0, 1}, &value, 1);
    if (job.rank() == 1) throw UserError("no such file");
    EXPECT_THROW(complete(*sum), PeerError);
    device->queue().finish();
  }),
               UserError);
}

}  // namespace
}  // namespace cortado
