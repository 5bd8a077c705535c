#include "cortado/data/leveldb_records.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

void for_each_leveldb_record(const std::string& path,
                             const std::function<void(std::string_view, std::string_view)>&) {
  throw UserError(fmt::format(
      "{}: this Cortado is built without LevelDB; install libleveldb-dev and build it again", path));
}

}  // namespace cortado
