#include "cortado/base/crc32c.h"

#include <gtest/gtest.h>
#include <string>

namespace cortado {
namespace {

// The examples of RFC 3720, appendix B.4, and the check value of catalogues of CRCs.
TEST(Crc32c, IsThatOfItsExamples) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending;
  for (char byte = 0; byte < 32; ++byte) ascending += byte;
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
}

}  // namespace
}  // namespace cortado
