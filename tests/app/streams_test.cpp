#include <gtest/gtest.h>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

class Streams : public testing::Test {
 protected:
  void SetUp() override { folder_.write("net.prototxt", small_net()); }
  CommandResult cortado(const std::string& arguments, const std::string& prelude = "") {
    return run_cortado(folder_.path(), arguments, prelude);
  }
  TemporaryFolder folder_;
};

TEST_F(Streams, MayBeClosed) {
  EXPECT_EQ(cortado("show --model net.prototxt 2>&-").exit_code, 0);
  EXPECT_EQ(cortado("show --model net.prototxt --json show.json <&- >&- 2>&-").exit_code, 0);
  EXPECT_EQ(folder_.read("show.json").find("{\n"), 0u);  // nothing printed went there
  EXPECT_EQ(cortado("show --model none.prototxt 2>&-").exit_code, 2);
  EXPECT_EQ(cortado("show --model none.prototxt 2>/dev/full").exit_code, 2);
}

TEST_F(Streams, AFullDiskIsNoInputOutputError) {
  const CommandResult result = cortado("data generate shapes --samples 2000", "ulimit -f 64; trap '' XFSZ;");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output, "cortado: error: writing database shapes failed: File too large\n");
  EXPECT_EQ(folder_.count("shapes"), 0);
}

TEST_F(Streams, WhatMemoryWasForIsTold) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take more address space than a limit leaves";
#endif
  folder_.write("list.txt", CORTADO_SOURCE_DIR "/tests/data/images/rgb.png 0\n");
  const CommandResult result =
      cortado("data images / list.txt db --resize-height 60000 --resize-width 60000", "ulimit -v 4000000;");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("resizing an image to 60000x60000: the system does not give the 10299.7 MiB"),
            std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace cortado
