#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cortado {

struct DatabaseRecord {
  std::string key;
  std::vector<uint8_t> value;
};

// The records of a database, in key order. Any thread may read.
class RecordDatabase {
 public:
  virtual ~RecordDatabase() = default;
  virtual int64_t size() const = 0;
  // Record `index`. Throws UserError naming the database, BrokenRecord where this record's value alone is
  // damaged.
  virtual DatabaseRecord at(int64_t index) = 0;
  virtual std::string key(int64_t index) = 0;  // of that record
};

}  // namespace cortado
