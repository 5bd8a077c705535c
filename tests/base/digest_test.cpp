#include "cortado/base/digest.h"

#include <gtest/gtest.h>
#include <string>

namespace cortado {
namespace {

// Values that xxHash and its bindings publish.
TEST(Digest, IsXxh64) {
  EXPECT_EQ(digest(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(digest("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(digest("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(digest("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(Digest, IsTheSameOfPartsAndTheWhole) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += static_cast<char>(i * 37);
  for (size_t part : {1, 3, 8, 31, 32, 33, 64, 100, 499}) {
    Digest parts;
    for (size_t begin = 0; begin < text.size(); begin += part)
      parts.add(std::string_view(text).substr(begin, part));
    EXPECT_EQ(parts.value(), digest(text)) << part;
  }
}

TEST(Digest, DiffersWhereAByteDoes) {
  const std::string text(100, 'x');
  for (size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] ^= 1;
    EXPECT_NE(digest(other), digest(text)) << at;
  }
}

}  // namespace
}  // namespace cortado
