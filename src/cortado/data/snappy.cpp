#include "cortado/data/snappy.h"

#include "cortado/data/byte_cursor.h"

namespace cortado {
namespace {

void check_snappy(bool fits) {
  if (!fits) throw UserError("it is not in Snappy's format");
}

// Bytes may repeat themselves: an offset less than the length is a pattern.
void append_copy(std::string& output, uint64_t offset, uint64_t length) {
  check_snappy(offset > 0 && offset <= output.size());
  for (uint64_t i = 0; i < length; ++i) output += output[output.size() - offset];
}

// A literal's length less one, in the tag or in the one to four bytes after it.
uint64_t literal_length(uint8_t tag, ByteCursor& input) {
  const uint64_t said = tag >> 2;
  return (said < 60 ? said : input.fixed(static_cast<int>(said) - 59)) + 1;
}

}  // namespace

std::string uncompressed_snappy(std::string_view bytes) {
  constexpr uint64_t most_a_byte = 32;  // a copy of 64 bytes takes two or more
  ByteCursor input(bytes);
  const uint64_t size = input.varint();
  check_snappy(size <= most_a_byte * bytes.size());
  std::string output;
  output.reserve(size);
  while (!input.empty()) {
    const auto tag = static_cast<uint8_t>(input.slice(1)[0]);
    switch (tag & 3) {
      case 0: {
        output += input.slice(literal_length(tag, input));
        break;
      }
      case 1: {
        const uint64_t upper = static_cast<uint64_t>(tag >> 5) << 8;
        append_copy(output, upper | input.fixed(1), (tag >> 2 & 7u) + 4);
        break;
      }
      default: {
        append_copy(output, input.fixed((tag & 3) == 2 ? 2 : 4), (tag >> 2u) + 1);
      }
    }
    check_snappy(output.size() <= size);
  }
  check_snappy(output.size() == size);
  return output;
}

}  // namespace cortado
