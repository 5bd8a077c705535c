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

}  // namespace
}  // namespace cortado
