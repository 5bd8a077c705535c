#pragma once

#include <string>
#include <vector>

namespace cortado {

// What stands below the options of a command: examples of it, each a command line, and all exit codes.
std::string help_footer(const std::vector<std::string>& examples = {});

}  // namespace cortado
