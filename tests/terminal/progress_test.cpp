#include "cortado/terminal/progress.h"

#include <gtest/gtest.h>

#include "cortado/terminal/log_lines.h"
#include "cortado/terminal/terminal_line.h"

namespace cortado {
namespace {

TEST(Progress, FillsTheBarAndKeepsTheWidth) {
  EXPECT_EQ(progress_text(5, 10, {}, 20), "[######.......] 5/10");
  EXPECT_EQ(progress_text(10, 10, {{"loss 1", 0}}, 80), "[" + std::string(24, '#') + "] 10/10  loss 1");
  for (int columns = 10; columns < 100; ++columns)
    EXPECT_LE(progress_text(3, 10, {{"loss 1.5", 0}, {"lr 0.1", 1}}, columns).size(),
              static_cast<size_t>(columns));
}

TEST(Progress, LeavesOutWhatMattersLeast) {
  const std::string text = progress_text(1, 2, {{"a long part", 1}, {"kept", 0}}, 24);
  EXPECT_NE(text.find("kept"), std::string::npos) << text;
  EXPECT_EQ(text.find("long"), std::string::npos) << text;
}

TEST(Progress, TellsTheTimeLeft) {
  EXPECT_EQ(clock_text(65.4), "1:05");
  EXPECT_EQ(clock_text(7200), "2:00:00");
}

TEST(LogLines, HaveThePrefixOfCaffesLogger) {
  set_log_format("caffe");
  testing::internal::CaptureStdout();
  log_line("solver.cpp:218", "Iteration 1");
  const std::string line = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(line.starts_with("I")) << line;
  EXPECT_TRUE(line.ends_with(" solver.cpp:218] Iteration 1\n")) << line;
  set_log_format("plain");
  testing::internal::CaptureStdout();
  log_line("solver.cpp:218", "Iteration 1");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Iteration 1\n");
}

TEST(TerminalLine, IsRewrittenInPlaceAndCut) {
  testing::internal::CaptureStdout();
  {
    TerminalLine line;
    line.draw(std::string(5000, 'x'));
    line.print_above("above");
  }
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_LT(text.size(), 2500u);
  EXPECT_NE(text.find("\r\x1b[Kabove\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n"));
}

}  // namespace
}  // namespace cortado
