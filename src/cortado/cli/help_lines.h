#pragma once

#include <CLI/Formatter.hpp>
#include <memory>

namespace cortado {

// Writes help with descriptions broken into lines.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace cortado
