#pragma once

#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

namespace cortado {

// Returns a formatter that breaks descriptions into lines.
std::shared_ptr<CLI::Formatter> help_formatter();

// Returns the text below the options of a command: examples, each a command line, and all exit codes.
std::string help_footer(const std::vector<std::string>& examples = {});

}  // namespace cortado
