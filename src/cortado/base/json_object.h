#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cortado/base/error.h"

namespace cortado {

// JSON with numbers of more bits than a double: a quantity changes its unit between file and memory
// ("latency_us", seconds), and comes back the same.
using Json = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, long double>;

// Throws UserError, which names `where`, unless `text` is JSON.
Json parse_json(const std::string& text, const std::string& where);

// Throws unless `json` is an object whose "format" is `format` and whose "version" is `version`. `kind` is
// what such a file is: "machine".
void check_format(const Json& json, const std::string& where, std::string_view kind, std::string_view format,
                  int version);

// What one of a file's unit is in memory's: 1e9L for "gflops", 1e-6L for "latency_us".
struct JsonUnit {
  long double size = 1;
};

// A JSON object of a file, and its place there. Readers throw UserError with file, key, value, remedy.
class JsonObject {
 public:
  // Throws unless `value` is an object with known keys only.
  JsonObject(const Json& value, std::string file, std::string path, std::span<const std::string_view> known);

  bool has(std::string_view key) const { return value_.contains(key); }
  const std::string& file() const { return file_; }
  std::string path_of(std::string_view key) const;
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

  // `meaning` is what to give: "the peak of float32 in GFLOP/s". Where a value is given, it was
  // found at `key`, as an element of its list. number() is finite and 0 or more.
  double positive(std::string_view key, JsonUnit unit, std::string_view meaning) const;
  double number(const Json& value, std::string_view key, JsonUnit unit, std::string_view meaning) const;
  double not_negative(std::string_view key, JsonUnit unit, std::string_view meaning) const;
  int whole(std::string_view key, int least, int most, std::string_view meaning) const;
  int whole(const Json& value, std::string_view key, int least, int most, std::string_view meaning) const;
  bool truth(std::string_view key, std::string_view meaning) const;
  std::string text(std::string_view key, std::string_view meaning) const;
  const Json& list(std::string_view key, std::string_view meaning) const;
  JsonObject object(std::string_view key, std::span<const std::string_view> known,
                    std::string_view meaning) const;
  const Json& get(std::string_view key, std::string_view meaning) const;  // of any type

 private:
  const Json& value_;
  std::string file_, path_;
};

// A value in a message: a number or a text itself, of lists and objects only what they are.
std::string shown(const Json& value);

// `value` in the unit, in as few digits as bring back the same double.
std::string number_text(double value, JsonUnit unit);

}  // namespace cortado
