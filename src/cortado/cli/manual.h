#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>

namespace cortado {

// The manual page of a command (or of the program, of which it is the root), in the macros of man(7), with
// what its help says. `version`: of the program.
std::string manual_page(const CLI::App& command, std::string_view version);

// The name of that page: "cortado", "cortado-train".
std::string manual_name(const CLI::App& command);

}  // namespace cortado
