#pragma once

#include <string>
#include <string_view>

namespace cortado {

// Text for HTML, SVG and XML, also within quotes: & < > " ' escaped; what XML cannot hold,
// control characters and bytes that are not UTF-8, replaced by "?".
std::string escaped(std::string_view text);

// An escaped name that may go on in a new line after / _ and +.
std::string breakable(std::string_view escaped_name);

// A cell of a table of HTML; narrow screens show its label, too. `value` is markup.
std::string table_cell(const char* label, const std::string& value);

}  // namespace cortado
