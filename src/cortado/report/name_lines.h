#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cortado {

// A name on lines of at most `most_letters`, broken after / _ - . : and + where there is one, so that it fits
// a narrow box. A name that needs more than `most_lines` begins with "…" and keeps its end, in which it
// differs from its neighbours.
std::vector<std::string> name_lines(const std::string& name, size_t most_letters, size_t most_lines);

// Letters of UTF-8.
size_t letters_of(const std::string& text);

}  // namespace cortado
