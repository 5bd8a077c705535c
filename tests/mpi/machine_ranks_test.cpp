#include <cstdlib>
#include <gtest/gtest.h>

#include "cortado/machine/file.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

TEST(MachineOnRanks, HasALinkForEveryPair) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_cortado(folder.path(), "machine --threads 1 --ranks 3 --seconds 0.5 --out m.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const DeviceGraph graph = parse_machine(folder.read("m.json"), "m.json");
  ASSERT_EQ(graph.devices(), 3);
  EXPECT_EQ(graph.nodes(), 1);
  EXPECT_EQ(graph.machine().pairs.size(), 9u);
  EXPECT_EQ(graph.device(0).memory, graph.device(2).memory);  // shared evenly
  EXPECT_GT(graph.link(2, 0).bandwidth.bytes_per_second, 0);
  EXPECT_FALSE(graph.calibration().allreduce.empty());
  EXPECT_NE(result.output.find("within a node"), std::string::npos) << result.output;
}

// Ranks of one machine that have different host names, each in a UTS namespace of its own.
class HostNames : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("unshare --uts true 2>/dev/null") != 0) GTEST_SKIP() << "needs root for host names";
    folder_.write("launch.sh", "n=$2; shift 2; exec " CORTADO_RANK_LAUNCHER " -n $n sh each.sh \"$@\"\n");
  }
  // hosts: of each rank.
  CommandResult run(const std::string& hosts) {
    folder_.write("each.sh", "set -- " + hosts +
                                 " -- \"$@\"; i=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; shift $i; host=$1\n" +
                                 "while [ \"$1\" != -- ]; do shift; done; shift\n" +
                                 "exec unshare --uts sh -c 'hostname \"$0\"; exec \"$@\"' $host \"$@\"\n");
    return run_cortado(folder_.path(),
                       "machine --threads 1 --ranks 3 --seconds 0.5 --out m.json --launch='sh launch.sh'",
                       "timeout -k 5 90");
  }
  TemporaryFolder folder_;
};

TEST_F(HostNames, AreNodesWithInterfaces) {
  const CommandResult result = run("anna anna bert");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const DeviceGraph graph = parse_machine(folder_.read("m.json"), "m.json");
  ASSERT_EQ(graph.nodes(), 2);
  EXPECT_EQ(graph.node(0).name, "anna");
  EXPECT_EQ(graph.devices_sharing_nic(0), 2);
  EXPECT_EQ(graph.node(1).name, "bert");
  EXPECT_GT(graph.nic(0).bytes_per_second, 0);
  EXPECT_GT(graph.device(2).memory, graph.device(0).memory);  // bert's memory is one rank's
  EXPECT_NE(result.output.find("network interface of bert"), std::string::npos) << result.output;
}

TEST_F(HostNames, ThatAreMixedAreRefused) {
  const CommandResult result = run("anna bert anna");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_NE(
      result.output.find("rank 2 runs on anna, as ranks before rank 1 do: start the ranks host by host"),
      std::string::npos)
      << result.output;
  EXPECT_EQ(folder_.count("m.json"), 0);
}

}  // namespace
}  // namespace cortado
