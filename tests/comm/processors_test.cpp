#include "cortado/comm/processors.h"

#include <gtest/gtest.h>
#include <numeric>
#include <sched.h>
#include <thread>

namespace cortado {
namespace {

TEST(Topology, TellsOfTheCachesThatItsCoresShare) {
  const auto caches = [](const char* description) {
    return Topology::synthetic(description).last_cache().count;
  };
  EXPECT_EQ(caches("package:2 l3:3(size=33554432) l2:4(size=1048576) core:1 pu:2"),
            2 * 3 * (int64_t{32} << 20));
  EXPECT_EQ(caches("package:2 l2:4(size=1048576) core:1 pu:1"), 8 << 20);
}

TEST(Processors, OneRankUsesACoreAThreadAndIsNotBound) {
  EXPECT_EQ(Topology::synthetic("package:2 core:4 pu:2").share(0, 1), (ProcessorShare{8, {}}));
}

TEST(Processors, RanksGetWholePackagesAndCores) {
  const Topology topology = Topology::synthetic("package:2 core:4 pu:2");
  EXPECT_EQ(topology.share(0, 2), (ProcessorShare{4, {0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(topology.share(1, 2), (ProcessorShare{4, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_EQ(topology.share(3, 8), (ProcessorShare{1, {6, 7}}));
}

TEST(Processors, EveryCoreHasOneRank) {
  const Topology topology = Topology::synthetic("package:2 core:5 pu:2");
  for (int ranks = 2; ranks <= 10; ++ranks) {
    std::vector<int> uses(20);
    int threads = 0;
    for (int index = 0; index < ranks; ++index) {
      const ProcessorShare share = topology.share(index, ranks);
      for (int processor : share.processors) ++uses[processor];
      EXPECT_EQ(share.threads * 2, static_cast<int>(share.processors.size())) << index << " of " << ranks;
      threads += share.threads;
    }
    EXPECT_EQ(uses, std::vector<int>(20, 1)) << ranks;
    EXPECT_EQ(threads, 10) << ranks;
  }
}

TEST(Processors, MoreRanksThanCoresAreNotBound) {
  EXPECT_EQ(Topology::synthetic("core:2 pu:1").share(2, 3), (ProcessorShare{1, {}}));
}

TEST(Processors, ThreadsStartWhereTheirParentIsBound) {
  std::thread([] {
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    int last = 0;
    for (int p = 0; p < CPU_SETSIZE; ++p) {
      if (CPU_ISSET(static_cast<size_t>(p), &before)) last = p;
    }
    bind_to({last});
    std::thread([last] {
      cpu_set_t own;
      sched_getaffinity(0, sizeof own, &own);
      EXPECT_EQ(CPU_COUNT(&own), 1);
      EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(last), &own));
      EXPECT_EQ(Topology::of_process().cores(), 1);
    }).join();
  }).join();
}

}  // namespace
}  // namespace cortado
