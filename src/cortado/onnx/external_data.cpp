#include "cortado/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "cortado/base/error.h"

namespace cortado::onnx {
namespace {

namespace fs = std::filesystem;

uint64_t byte_count(const std::string& key, const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError(fmt::format("has external data with {} '{}', which is no number", key, text));
  return value;
}

// A link may lead out of the folder, too.
fs::path file_within(const std::string& folder, const std::string& location) {
  const fs::path named(location);
  const bool climbs = std::ranges::find(named, fs::path("..")) != named.end();
  std::error_code error;
  const fs::path root = fs::weakly_canonical(folder, error);
  const fs::path file = fs::weakly_canonical(root / named, error);
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
  if (folder.empty() || location.empty() || named.is_absolute() || climbs || error || end != root.end())
    throw UserError(fmt::format(
        "has external data in '{}', outside the model's folder; lay that file beside the model", location));
  if (!fs::is_regular_file(file, error))
    throw UserError(
        fmt::format("has external data in '{}', which is no file in the model's folder", location));
  return file;
}

}  // namespace

std::string read_external_data(const TensorProto& tensor, const std::string& folder) {
  std::string location;
  uint64_t offset = 0, length = UINT64_MAX;
  for (const StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = byte_count("offset", entry.value());
    if (entry.key() == "length") length = byte_count("length", entry.value());
  }
  const fs::path file = file_within(folder, location);
  const uint64_t size = fs::file_size(file);
  if (offset > size || (length != UINT64_MAX && length > size - offset))
    throw UserError(fmt::format("has external data at byte {} of '{}', a file of {} bytes; it is truncated",
                                offset, location, size));
  std::string bytes(std::min(length, size - offset), '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    throw UserError(fmt::format("has external data in '{}', which cannot be read", location));
  return bytes;
}

}  // namespace cortado::onnx
