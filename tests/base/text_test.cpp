#include "cortado/base/text.h"

#include <gtest/gtest.h>

namespace cortado {
namespace {

TEST(Text, PrintableShowsWhatATerminalWouldObey) {
  EXPECT_EQ(printable("conv1/3x3 caf\u00e9 \u5377\u79ef \U0001F600"),
            "conv1/3x3 caf\u00e9 \u5377\u79ef \U0001F600");
  EXPECT_EQ(printable("a\x1b[31mred\a\r\n\tb"), "a\\x1b[31mred\\x07\\x0d\\n\\tb");
  EXPECT_EQ(printable(std::string("\0\x7f", 2)), "\\x00\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\xc2\\x9b31m")
      << "the control sequence introducer as one character";
  EXPECT_EQ(printable("\xFF\xE5\x8D"), "\\xff\\xe5\\x8d") << "not UTF-8, and cut short";
  EXPECT_EQ(printable("\xC0\x9B"), "\\xc0\\x9b") << "escape in two bytes";
}

TEST(Text, MessagesKeepTheirEnds) {
  const std::string message = "layer '" + std::string(5 << 20, 'x') + "': give another name";
  const std::string line = message_line(message);
  EXPECT_LT(line.size(), 4000u);
  EXPECT_TRUE(line.starts_with("layer 'xxx"));
  EXPECT_TRUE(line.ends_with("xxx': give another name"));
  EXPECT_LE(message_line(std::string(5 << 20, '\x1b')).size(), 12000u);
  EXPECT_EQ(message_line("one\nline"), "one\\nline");
}

}  // namespace
}  // namespace cortado
