#include "cortado/train/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cortado/base/digest.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/seal.h"

namespace cortado {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are copied to and from little-endian files");

using Json = nlohmann::ordered_json;

constexpr uint64_t largest_header = 100'000'000;  // the limit of the format's own library

// The header of a file that has a checksum begins with this. Its digits come next; they count as zeros in the
// digest of all the file's bytes.
constexpr std::string_view checksum_mark = R"({"__metadata__":{"cortado_checksum":"xxh64:)";
constexpr std::string_view no_digits = "0000000000000000";
constexpr uint64_t digits_begin = sizeof(uint64_t) + checksum_mark.size();

std::string digits_of(const Digest& digest) { return fmt::format("{:016x}", digest.value()); }

// A file open for reading, its parsed header, and where the data begins.
struct OpenFile {
  std::string path;
  std::ifstream stream;
  Json header;
  uint64_t data_begin = 0, data_size = 0;
  OtherTypes others = OtherTypes::refused;

  [[noreturn]] void refuse(const std::string& fault) const {
    throw DamagedFile(fmt::format("{}: not a sound safetensors file: {}", path, fault));
  }
};

// Whether the file has a checksum. Throws DamagedFile when it does not fit.
bool check_checksum(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string bytes(digits_begin + no_digits.size(), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!stream || bytes.substr(sizeof(uint64_t), checksum_mark.size()) != checksum_mark) return false;
  const std::string digits = bytes.substr(digits_begin);
  Digest digest;
  digest.add(std::string_view(bytes).substr(0, digits_begin));
  digest.add(no_digits);
  bytes.resize(size_t{1} << 20);
  while (stream) {
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    digest.add(std::string_view(bytes.data(), static_cast<size_t>(stream.gcount())));
  }
  if (digits != digits_of(digest)) refuse_damaged(path);
  return true;
}

Json parse_header(const OpenFile& file, const std::string& text) {
  std::set<std::string> names;
  std::string doubled;
  auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) {
      auto name = parsed.get<std::string>();
      if (!names.insert(name).second) doubled = name;
    }
    return true;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (!header.is_object()) file.refuse("its header is no JSON object");
  if (!doubled.empty()) file.refuse(fmt::format("'{}' stands twice in its header", doubled));
  return header;
}

OpenFile open_safetensors(const std::string& path) {
  OpenFile file{path, std::ifstream(path, std::ios::binary), {}};
  if (!file.stream) throw UserError(fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  file.stream.seekg(0, std::ios::end);
  auto size = static_cast<uint64_t>(std::max<std::streamoff>(0, file.stream.tellg()));
  file.stream.seekg(0);
  uint64_t header_size = 0;
  if (size < sizeof header_size) file.refuse(fmt::format("it ends after {} bytes", size));
  file.stream.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  if (header_size > largest_header || header_size > size - sizeof header_size) {
    file.refuse(fmt::format("its header says {} bytes, the file has {}", header_size, size));
  }
  std::string text(header_size, '\0');
  file.stream.read(text.data(), static_cast<std::streamsize>(header_size));
  if (!file.stream) file.refuse("reading its header failed");
  file.header = parse_header(file, text);
  file.data_begin = sizeof header_size + header_size;
  file.data_size = size - file.data_begin;
  return file;
}

std::map<std::string, std::string> metadata_of(const OpenFile& file) {
  std::map<std::string, std::string> metadata;
  auto found = file.header.find("__metadata__");
  if (found == file.header.end()) return metadata;
  if (!found->is_object()) file.refuse("__metadata__ is no object");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) file.refuse(fmt::format("__metadata__ '{}' is no text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// Where a tensor's bytes lie, counted from data_begin.
struct TensorEntry {
  std::string name;
  Shape shape;
  uint64_t begin = 0, end = 0;
  bool is_f32 = true;
};

// Bytes of an element of a type of the format; 0: there is no such type.
uint64_t bytes_of_type(const Json& name) {
  static const std::map<std::string, uint64_t, std::less<>> types = {
      {"F64", 8},  {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4}, {"U32", 4}, {"F16", 2},
      {"BF16", 2}, {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  const auto found = name.is_string() ? types.find(name.get_ref<const std::string&>()) : types.end();
  return found == types.end() ? 0 : found->second;
}

std::string_view bytes_of(const void* data, size_t size) { return {static_cast<const char*>(data), size}; }

bool is_count(const Json& value) { return value.is_number_unsigned(); }

TensorEntry tensor_entry(const OpenFile& file, const std::string& name, const Json& json) {
  auto refuse_unless = [&](bool right, const char* fault) {
    if (!right) file.refuse(fmt::format("tensor '{}': {}", name, fault));
  };
  refuse_unless(json.is_object() && json.contains("dtype") && json.contains("shape") &&
                    json.contains("data_offsets") && json.size() == 3,
                "needs dtype, shape and data_offsets and nothing else");
  const uint64_t element = bytes_of_type(json["dtype"]);
  refuse_unless(json["dtype"] == "F32" || (file.others == OtherTypes::passed_over && element > 0),
                "its dtype is not F32; convert it to float32");
  const Json &shape = json["shape"], &offsets = json["data_offsets"];
  refuse_unless(shape.is_array() && shape.size() <= Shape::max_rank,
                "shape is no array of at most 8 extents");
  refuse_unless(offsets.is_array() && offsets.size() == 2 && is_count(offsets[0]) && is_count(offsets[1]),
                "data_offsets are not two byte counts");
  TensorEntry entry{name, {}, offsets[0].get<uint64_t>(), offsets[1].get<uint64_t>(), json["dtype"] == "F32"};
  refuse_unless(entry.begin <= entry.end && entry.end <= file.data_size, "data_offsets lie outside the file");
  uint64_t elements = 1;
  for (const Json& extent : shape) {
    refuse_unless(is_count(extent), "an extent is no count");
    auto value = extent.get<uint64_t>();
    refuse_unless(value == 0 || elements <= file.data_size / value, "shape is larger than the file");
    elements *= value;
    entry.shape.append(static_cast<int64_t>(value));
  }
  refuse_unless(entry.end - entry.begin == elements * element, "data_offsets do not fit the shape");
  return entry;
}

// All tensors in the order of their data, which must be covered without holes and overlaps.
std::vector<TensorEntry> tensor_entries(const OpenFile& file) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, json] : file.header.items()) {
    if (name != "__metadata__") entries.push_back(tensor_entry(file, name, json));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const TensorEntry& entry : entries) {
    if (entry.begin != covered)
      file.refuse(fmt::format("tensor '{}' overlaps another or leaves a hole", entry.name));
    covered = entry.end;
  }
  if (covered != file.data_size) {
    file.refuse(
        fmt::format("tensors cover {} bytes of {}; it is truncated or has more", covered, file.data_size));
  }
  return entries;
}

std::string header_text(const SafetensorsFile& file) {
  Json header = Json::object();
  Json& metadata = header["__metadata__"] = Json::object();
  metadata[SafetensorsFile::checksum_key] = fmt::format("xxh64:{}", no_digits);
  for (const auto& [key, value] : file.metadata)
    if (key != SafetensorsFile::checksum_key) metadata[key] = value;
  uint64_t offset = 0;
  for (const auto& tensor : file.tensors) {
    ensure(static_cast<size_t>(tensor.shape.size()) == tensor.values.size(),
           "a tensor's values fill its shape");
    ensure(!header.contains(tensor.name), "tensor names of one file differ");
    uint64_t end = offset + tensor.values.size() * sizeof(float);
    auto extents = tensor.shape.extents();
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", std::vector<int64_t>(extents.begin(), extents.end())},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that tensors are aligned
  return text;
}

}  // namespace

const SafetensorsFile::Tensor* SafetensorsFile::find(const std::string& name) const {
  auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

SafetensorsFile::Tensor* SafetensorsFile::find(const std::string& name) {
  return const_cast<Tensor*>(std::as_const(*this).find(name));
}

std::map<std::string, std::string> read_safetensors_metadata(const std::string& path) {
  return metadata_of(open_safetensors(path));
}

SafetensorsFile read_safetensors(const std::string& path, OtherTypes others) {
  const bool checked = check_checksum(path);
  OpenFile file = open_safetensors(path);
  file.others = others;
  SafetensorsFile result{{}, metadata_of(file)};
  if (!checked && result.metadata.contains(SafetensorsFile::checksum_key)) refuse_damaged(path);
  for (const TensorEntry& entry : tensor_entries(file)) {
    if (!entry.is_f32) continue;
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    file.stream.seekg(static_cast<std::streamoff>(file.data_begin + entry.begin));
    file.stream.read(reinterpret_cast<char*>(values.data()),
                     static_cast<std::streamsize>(entry.end - entry.begin));
    if (!file.stream) file.refuse(fmt::format("reading tensor '{}' failed", entry.name));
    result.tensors.push_back({entry.name, entry.shape, std::move(values)});
  }
  return result;
}

void write_safetensors(const std::string& path, const SafetensorsFile& file) {
  std::string header = header_text(file);
  ensure(header.starts_with(checksum_mark), "a safetensors header begins with its checksum");
  const uint64_t header_size = header.size();
  std::vector<std::string_view> parts = {bytes_of(&header_size, sizeof header_size), header};
  for (const auto& tensor : file.tensors)
    parts.push_back(bytes_of(tensor.values.data(), tensor.values.size() * sizeof(float)));
  Digest digest;
  for (std::string_view part : parts) digest.add(part);
  header.replace(checksum_mark.size(), no_digits.size(), digits_of(digest));
  FileWriter writer(path);
  for (std::string_view part : parts) writer.write(part);
  writer.finish();
}

}  // namespace cortado
