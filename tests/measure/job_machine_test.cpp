#include "cortado/measure/job_machine.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "cortado/comm/local/local_job.h"
#include "cortado/machine/file.h"
#include "cortado/measure/host_facts.h"

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<RankFacts> on_hosts(const std::vector<std::string>& hosts) {
  std::vector<RankFacts> ranks(hosts.size());
  for (size_t rank = 0; rank < hosts.size(); ++rank)
    hosts[rank].copy(ranks[rank].host, sizeof ranks[rank].host - 1);
  return ranks;
}

TEST(NodesOfRanks, AreTheHostsInOrder) {
  EXPECT_THAT(nodes_of_ranks(on_hosts({"a"})), ElementsAre(0));
  EXPECT_THAT(nodes_of_ranks(on_hosts({"a", "a", "b", "c", "c"})), ElementsAre(0, 0, 1, 2, 2));
  EXPECT_THAT(nodes_of_ranks(on_hosts({"b", "a"})), ElementsAre(0, 1));
}

TEST(NodesOfRanks, OfMixedHostsAreRefusedWithARemedy) {
  const std::string error = error_of([] { nodes_of_ranks(on_hosts({"a", "b", "a", "b"})); });
  EXPECT_THAT(error, HasSubstr("rank 2 runs on a, as ranks before rank 1 do"));
  EXPECT_THAT(error, HasSubstr("start the ranks host by host"));
  EXPECT_THAT(error, HasSubstr("-ppn 2"));
}

TEST(FactsOfJob, AreTheSameAtEveryRank) {
  std::vector<std::vector<RankFacts>> facts(3);
  std::vector<std::string> texts(3);
  LocalJob(3).run([&](Communicator& job) {
    const auto rank = static_cast<size_t>(job.rank());
    facts[rank] = facts_of_job(job);
    texts[rank] = from_first_rank(job, "of rank " + std::to_string(rank));
  });
  const HostFacts host = host_facts();
  for (size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(texts[rank], "of rank 0");
    ASSERT_EQ(facts[rank].size(), 3u);
    EXPECT_EQ(std::memcmp(facts[rank].data(), facts[0].data(), 3 * sizeof(RankFacts)), 0);
    for (const RankFacts& one : facts[rank]) {
      EXPECT_EQ(one.host, host.name);
      EXPECT_EQ(one.cores, host.cores);
      EXPECT_EQ(one.memory, host.memory.count);
      EXPECT_EQ(one.peak, 0);  // nothing is measured
    }
  }
}

// The system's own words, read another way.
TEST(HostFacts, AreWhatTheSystemSays) {
  const HostFacts facts = host_facts();
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  EXPECT_EQ(facts.name, name);
  EXPECT_GE(facts.threads, facts.cores);
  EXPECT_GE(facts.cores, facts.sockets);
  EXPECT_GE(facts.sockets, 1);
  EXPECT_LE(facts.threads, sysconf(_SC_NPROCESSORS_CONF));
  struct sysinfo system {};
  ASSERT_EQ(sysinfo(&system), 0);
  EXPECT_GT(facts.memory, Bytes{});
  EXPECT_LE(facts.memory.count, static_cast<int64_t>(system.totalram) * system.mem_unit);
  for (size_t i = 1; i < facts.caches.size(); ++i) {
    EXPECT_GT(facts.caches[i].level, facts.caches[i - 1].level);
    EXPECT_GE(facts.caches[i].size, facts.caches[i - 1].size);
    EXPECT_LE(facts.caches[i].count, facts.caches[i - 1].count);
  }
}

TEST(HostFacts, NameInstructionSetsThatTheProcessorHas) {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) flags = line + " ";
  const HostFacts facts = host_facts();
  for (const std::string& set : facts.instruction_sets) EXPECT_THAT(flags, HasSubstr(" " + set + " "));
  const auto named = [&](const char* set) {
    return std::ranges::find(facts.instruction_sets, set) != facts.instruction_sets.end();
  };
  EXPECT_EQ(named("avx2"), flags.find(" avx2 ") != std::string::npos);
}

// Figures mean little on threads, but all are there, and the file has them as they are.
TEST(MeasureMachine, HasAllFiguresOfEveryRank) {
  std::vector<std::optional<Machine>> machines(2);
  LocalJob(2).run(
      [&](Communicator& job) { machines[static_cast<size_t>(job.rank())] = measure_machine(job, 0.3); });
  const Machine& machine = *machines[0];
  ASSERT_EQ(machine.nodes.size(), 1u);
  EXPECT_EQ(machine.name, host_facts().name);
  ASSERT_EQ(machine.nodes[0].devices.size(), 2u);
  for (const Device& device : machine.nodes[0].devices) {
    EXPECT_GT(device.peak.per_second, 0);
    EXPECT_GT(device.memory_bandwidth.bytes_per_second, 0);
    EXPECT_GT(device.task_overhead, Seconds{});
    EXPECT_LE(device.memory.count, host_facts().memory.count / 2);  // the ranks share it
  }
  ASSERT_EQ(machine.pairs.size(), 4u);
  EXPECT_EQ(machine.pairs[1], machine.pairs[2]);
  EXPECT_GT(machine.pairs[1].bandwidth.bytes_per_second, 0);
  for (const CollectiveTime& sum : machine.calibration.allreduce) EXPECT_EQ(sum.devices, 2);
  EXPECT_FALSE(machine.calibration.allreduce.empty());
  EXPECT_EQ(machines[1]->nodes, machine.nodes);
  EXPECT_EQ(machines[1]->pairs, machine.pairs);
  const DeviceGraph graph(machine);
  EXPECT_EQ(parse_machine(machine_text(graph), "test"), graph);
  EXPECT_THAT(machine.about.at(1), HasSubstr("2 ranks; rank 0 on "));
}

}  // namespace
}  // namespace cortado
