#include "cortado/net/seal.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>

#include "cortado/base/digest.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

using namespace std::string_view_literals;

// Each part of a seal has a mark by which it is known, so that no single fault hides that there is one.
// Fields 10001 and 10002 of protobuf's wire type 2, each of 16 bytes: 8 of text and a number.
constexpr auto length_mark =
    "\x8a\xf1\x04\x10"
    "cortado:"sv;
constexpr auto checksum_mark =
    "\x92\xf1\x04\x10"
    "cortado:"sv;
constexpr auto hdf5_mark = "\ncortado"sv, hdf5_end = "cortado\n"sv;
constexpr size_t number_bytes = sizeof(uint64_t);
constexpr size_t field_bytes = length_mark.size() + number_bytes;
constexpr size_t hdf5_seal_bytes = hdf5_mark.size() + number_bytes + hdf5_end.size();
static_assert(message_seal_bytes == 2 * field_bytes);

std::string bytes_of(uint64_t number) {
  std::string bytes(number_bytes, '\0');
  std::memcpy(bytes.data(), &number, number_bytes);
  return bytes;
}

bool is_number(std::string_view bytes, uint64_t number) { return bytes == bytes_of(number); }

bool message_fits(std::string_view content) {
  const std::string_view checked = content.substr(0, content.size() - number_bytes);
  return checked.starts_with(length_mark) && checked.ends_with(checksum_mark) &&
         is_number(content.substr(length_mark.size(), number_bytes), content.size()) &&
         is_number(content.substr(checked.size()), digest(checked));
}

bool hdf5_fits(std::string_view content) {
  const std::string_view checked = content.substr(0, content.size() - hdf5_end.size() - number_bytes);
  return checked.ends_with(hdf5_mark) && content.ends_with(hdf5_end) &&
         is_number(content.substr(checked.size(), number_bytes), digest(checked));
}

// Whether three or more letters of `mark` end the text.
bool ends_with_start_of(std::string_view text, std::string_view mark) {
  for (size_t letters = 3; letters < mark.size(); ++letters)
    if (text.ends_with(mark.substr(0, letters))) return true;
  return false;
}

}  // namespace

std::string sealed_message(std::string_view message) {
  std::string content;
  content.reserve(message.size() + message_seal_bytes);
  content += length_mark;
  content += bytes_of(message.size() + message_seal_bytes);
  content += message;
  content += checksum_mark;
  return content += bytes_of(digest(content));
}

std::string sealed_hdf5(std::string image) {
  image += hdf5_mark;
  image += bytes_of(digest(image));
  return image += hdf5_end;
}

void check_seal(std::string_view content, const std::string& path) {
  const auto has_at_end = [&](std::string_view mark, size_t bytes_after) {
    return content.size() >= mark.size() + bytes_after &&
           content.substr(content.size() - bytes_after - mark.size(), mark.size()) == mark;
  };
  const bool message = content.starts_with(length_mark) || has_at_end(checksum_mark, number_bytes);
  // Where a file ends within its seal, the mark lies nearer to the end, or the file ends with three or more
  // of the mark's first letters.
  const std::string_view tail = content.substr(content.size() - std::min(content.size(), hdf5_seal_bytes));
  const bool hdf5 =
      tail.find(hdf5_mark) != tail.npos || tail.ends_with(hdf5_end) || ends_with_start_of(tail, hdf5_mark);
  if (!message && !hdf5) return;
  const bool long_enough = content.size() >= (message ? message_seal_bytes : hdf5_seal_bytes);
  if (!long_enough || !(message ? message_fits(content) : hdf5_fits(content))) refuse_damaged(path);
}

void refuse_damaged(const std::string& path) {
  throw DamagedFile(
      fmt::format("{} is damaged: its checksum does not fit; copy it again, or take another", path));
}

}  // namespace cortado
