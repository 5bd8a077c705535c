#include <gtest/gtest.h>

#include "cortado/machine/file.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class MachineCommand : public testing::Test {
 protected:
  void expect_error(const std::string& arguments, const std::string& message) {
    const CommandResult result = run_cortado(folder_.path(), "machine --threads 1 " + arguments);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_EQ(result.output, "cortado: error: " + message + "\n");
    EXPECT_EQ(folder_.count("m.json"), 0);
  }
  TemporaryFolder folder_;
};

TEST_F(MachineCommand, WritesThisMachine) {
  const CommandResult result = run_cortado(folder_.path(), "machine --threads 1 --seconds 0.2 --out m.json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_NE(result.output.find("written to m.json"), std::string::npos) << result.output;
  const DeviceGraph graph = parse_machine(folder_.read("m.json"), "m.json");
  ASSERT_EQ(graph.devices(), 1);
  EXPECT_GT(graph.device(0).peak.per_second, 0);
  EXPECT_GT(graph.device(0).memory_bandwidth.bytes_per_second, 0);
  EXPECT_GT(graph.device(0).memory.count, 1 << 20);
  EXPECT_EQ(graph.device(0).name, "1 thread");
  EXPECT_GT(graph.node(0).cores, 0);
  EXPECT_EQ(folder_.count(".tmp"), 0);
}

TEST_F(MachineCommand, JsonIsTheFile) {
  const CommandResult result = run_cortado(folder_.path(), "machine --threads 1 --seconds 0.1 --json");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(machine_text(parse_machine(result.output, "output")), result.output);
}

TEST_F(MachineCommand, WrongInputIsRefusedBeforeMeasuring) {
  expect_error("--out nowhere/m.json", "--out nowhere/m.json: there is no folder 'nowhere'; make it first");
  expect_error("--seconds 0", "--seconds: 0 is not a number from 0.1 to 3600");
  expect_error("--seconds soon", "--seconds: soon is not a number from 0.1 to 3600");
  expect_error("--ranks 0", "--ranks: 0 is not a whole number from 1 to 10000");
  expect_error("--oud m.json", "'cortado machine' has no option --oud; did you mean '--out'?");
  expect_error("m.json", "'cortado machine' does not take 'm.json'");
}

}  // namespace
}  // namespace cortado
