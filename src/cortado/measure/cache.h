#pragma once

#include <functional>
#include <optional>
#include <string>

namespace cortado {

// Where measurements are kept between runs: $CORTADO_CACHE, else $XDG_CACHE_HOME/cortado, else
// ~/.cache/cortado (XDG Base Directory Specification); empty where none of them is set.
std::string cache_folder();

// Who is told what a user should know though the work goes on; null: nobody.
using Notices = std::function<void(const std::string& line)>;

// A file of that folder; nothing where it is not there. Losing it costs time alone, so what goes wrong is
// told and goes on without.
std::optional<std::string> read_cached(const std::string& name, const Notices& tell);
void write_cached(const std::string& name, const std::string& content, const Notices& tell);

}  // namespace cortado
