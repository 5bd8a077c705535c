#include <gtest/gtest.h>
#include <set>

#include "cortado/comm/local/local_job.h"
#include "cortado/measure/allreduce_probe.h"
#include "cortado/measure/busy_link.h"
#include "cortado/measure/link_probes.h"
#include "cortado/measure/message_overhead.h"

namespace cortado {
namespace {

TEST(Measure, RoundsHoldEachPairOnceAndNoNodeTwice) {
  for (const std::vector<int>& nodes :
       {std::vector<int>{0}, {0, 0}, {0, 1, 2, 3}, {0, 0, 0, 1, 1}, {0, 1, 1, 2, 3, 3, 3}}) {
    std::set<RankPair> seen;
    for (const auto& round : rounds_of_pairs(nodes)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_TRUE(seen.insert({a, b}).second) << a << " " << b;
        const std::set<int> ends{nodes[static_cast<size_t>(a)], nodes[static_cast<size_t>(b)]};
        for (int node : ends) EXPECT_TRUE(busy.insert(node).second) << node;
      }
    }
    EXPECT_EQ(seen.size(), nodes.size() * (nodes.size() - 1) / 2);
  }
}

TEST(Measure, RanksOfDifferentNodesAreMeasuredTogether) {
  EXPECT_EQ(rounds_of_pairs(std::vector{0, 1, 2, 3}).size(), 3u);  // two pairs at a time
  EXPECT_EQ(rounds_of_pairs(std::vector{0, 0, 0, 0}).size(), 6u);  // one after the other
}

// Ranks are threads: figures mean nothing here, but every one is there, and all ranks agree on them.
TEST(Measure, EveryRankHasEveryLinkAndInterface) {
  const std::vector<int> nodes{0, 0, 1};
  std::vector<std::vector<Link>> links(3);
  std::vector<std::vector<Bandwidth>> nics(3);
  LocalJob(3).run([&](Communicator& job) {
    const auto rank = static_cast<size_t>(job.rank());
    links[rank] = measure_pairs(job, nodes, {0.01});
    nics[rank] = measure_nics(job, nodes, links[rank]);
  });
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(links[rank], links[0]);
    EXPECT_EQ(nics[rank], nics[0]);
  }
  ASSERT_EQ(nics[0].size(), 2u);
  for (const Bandwidth& nic : nics[0]) EXPECT_GT(nic.bytes_per_second, 0);
  ASSERT_EQ(links[0].size(), 9u);
  for (size_t from = 0; from < 3; ++from) {
    for (size_t to = 0; to < 3; ++to) {
      const Link& link = links[0][3 * from + to];
      if (from == to) continue;
      EXPECT_GT(link.latency.count, 0) << from << to;
      EXPECT_GT(link.bandwidth.bytes_per_second, 0) << from << to;
      EXPECT_EQ(link, links[0][3 * to + from]);
    }
  }
}

TEST(Measure, OneNodeHasNoInterfaceToMeasure) {
  LocalJob(2).run([&](Communicator& job) {
    EXPECT_EQ(measure_nics(job, std::vector{0, 0}, std::vector<Link>(4)), std::vector<Bandwidth>(1));
  });
}

TEST(Measure, MessagesCostComputingWithinNodesAndBetweenThem) {
  const std::vector<std::vector<int>> machines{{0, 0, 1}, {0, 1}, {0, 0}, {0}};
  for (const std::vector<int>& nodes : machines) {
    const size_t ranks = nodes.size();
    std::vector<MessageOverhead> overheads(ranks);
    LocalJob(static_cast<int>(ranks)).run([&](Communicator& job) {
      const std::vector<Link> pairs(ranks * ranks, Link{{1e-6}, {1e9}});
      overheads[static_cast<size_t>(job.rank())] = measure_message_overhead(job, nodes, pairs, {0.1});
    });
    for (const MessageOverhead& overhead : overheads) {
      EXPECT_EQ(overhead, overheads[0]);
      EXPECT_GE(overhead.node, 0);
      EXPECT_GE(overhead.network, 0);
      if (nodes.back() == 0) {
        EXPECT_EQ(overhead.network, 0);
      }
      if (ranks == static_cast<size_t>(nodes.back()) + 1) {
        EXPECT_EQ(overhead.node, 0);
      }
    }
  }
}

TEST(Measure, BusyLinksAreThoseBetweenNodes) {
  const std::vector<std::vector<int>> machines{{0, 0, 1}, {0, 1, 2}, {0, 0}, {0}};
  for (const std::vector<int>& nodes : machines) {
    const size_t ranks = nodes.size();
    std::vector<Seconds> waits(ranks);
    LocalJob(static_cast<int>(ranks)).run([&](Communicator& job) {
      const std::vector<Link> pairs(ranks * ranks, Link{{1e-6}, {1e9}});
      waits[static_cast<size_t>(job.rank())] = measure_busy_link(job, nodes, pairs, {0.01});
    });
    for (const Seconds& wait : waits) {
      EXPECT_EQ(wait, waits[0]);
      EXPECT_GE(wait.count, 0);
      if (nodes.back() == 0) {
        EXPECT_EQ(wait.count, 0);
      }
    }
  }
}

TEST(Measure, SumsAreOverTwoFourAndAllRanks) {
  std::vector<CollectiveTime> times;
  LocalJob(5).run([&](Communicator& job) {
    const std::vector<CollectiveTime> mine = measure_allreduce(job, {0.05});
    if (job.rank() == 0) times = mine;
  });
  std::set<int> groups;
  for (const CollectiveTime& one : times) {
    groups.insert(one.devices);
    EXPECT_GT(one.time.count, 0);
    EXPECT_GE(one.bytes.count, 1024);
  }
  EXPECT_EQ(groups, (std::set<int>{2, 4, 5}));
}

}  // namespace
}  // namespace cortado
