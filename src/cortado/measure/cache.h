#pragma once

#include <functional>
#include <optional>
#include <string>

namespace cortado {

// Where measurements are kept between runs: $CORTADO_CACHE, else $XDG_CACHE_HOME/cortado, else
// ~/.cache/cortado (XDG Base Directory Specification); empty where none of them is set.
std::string cache_folder();

// Called with what a user should know, though the work goes on; null: nobody wants to know.
using Notices = std::function<void(const std::string& line)>;

// Reads a file of that folder; nothing where it is not there. A lost file costs only time, so a failure is a
// notice, not an error.
std::optional<std::string> read_cached(const std::string& name, const Notices& tell);
void write_cached(const std::string& name, const std::string& content, const Notices& tell);

}  // namespace cortado
