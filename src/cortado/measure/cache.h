#pragma once

#include <optional>
#include <string>

#include "cortado/base/notices.h"

namespace cortado {

// Where measurements are kept between runs: $CORTADO_CACHE, else $XDG_CACHE_HOME/cortado, else
// ~/.cache/cortado (XDG Base Directory Specification); empty where none of them is set.
std::string cache_folder();

// Reads a file of that folder; nothing where it is not there. A lost file costs only time, so a failure is a
// notice, not an error.
std::optional<std::string> read_cached(const std::string& name, const Notices& notify);
void write_cached(const std::string& name, const std::string& content, const Notices& notify);

}  // namespace cortado
