#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cortado {

// Calls record(key, value) for each record of a LevelDB folder, in key order. LevelDB locks the folder, so
// that no other process may have it open, and writes its own log there. Throws UserError: missing, no
// LevelDB, held by another process, damaged, or Cortado is built without LevelDB.
void for_each_leveldb_record(const std::string& path,
                             const std::function<void(std::string_view key, std::string_view value)>& record);

}  // namespace cortado
