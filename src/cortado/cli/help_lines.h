#pragma once

#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

namespace cortado {

// Writes help with descriptions broken into lines.
std::shared_ptr<CLI::Formatter> help_formatter();

// What stands below the options of a command: examples of it, each a command line, and all exit codes.
std::string help_footer(const std::vector<std::string>& examples = {});

}  // namespace cortado
