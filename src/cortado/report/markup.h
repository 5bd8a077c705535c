#pragma once

#include <string>
#include <string_view>

namespace cortado {

// Escapes & < > " ' for HTML, SVG and XML, also within quotes. Replaces what XML does not allow (control
// characters, bytes that are not UTF-8) by "?".
std::string escaped(std::string_view text);

// An escaped name that may go on in a new line after / _ and +.
std::string breakable(std::string_view escaped_name);

// Returns a cell of an HTML table. Narrow screens show its label, too. `value` is markup.
std::string table_cell(const char* label, const std::string& value);

}  // namespace cortado
