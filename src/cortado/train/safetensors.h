#pragma once

#include <map>
#include <string>
#include <vector>

#include "cortado/base/shape.h"

namespace cortado {

// A safetensors file of float32 tensors: 8 bytes little-endian header size, a JSON header of
// {"NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end)}, "__metadata__": {text: text}}, then
// the tensors, row-major and little-endian, one after the other.
struct SafetensorsFile {
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<float> values;
    bool operator==(const Tensor&) const = default;
  };
  // The key, in the metadata, of a checksum of the whole file, which writing adds.
  static constexpr const char* checksum_key = "cortado_checksum";

  std::vector<Tensor> tensors;  // in the order of the file
  std::map<std::string, std::string> metadata;

  const Tensor* find(const std::string& name) const;  // null: none of that name
  Tensor* find(const std::string& name);
  bool operator==(const SafetensorsFile&) const = default;
};

// Throws UserError naming the file and the fault: not there, types other than F32; DamagedFile: truncated, a
// checksum that does not fit, a header that is no JSON or has doubled names, offsets that do not tile the
// data exactly. `others`: what to do with tensors of other types than F32, such as PyTorch's counts of
// batches.
enum class OtherTypes { refused, passed_over };
SafetensorsFile read_safetensors(const std::string& path, OtherTypes others = OtherTypes::refused);

// The JSON header's metadata alone, without reading the tensors.
std::map<std::string, std::string> read_safetensors_metadata(const std::string& path);

// Writes with a checksum, under a temporary name, syncs and renames (base/file.h): `path` is either what it
// was or complete.
void write_safetensors(const std::string& path, const SafetensorsFile& file);

}  // namespace cortado
