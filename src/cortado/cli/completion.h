#pragma once

#include <CLI/App.hpp>
#include <string>

namespace cortado {

// A script by which a shell completes commands, options and the words that options take; other values are
// completed as names of files.
std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string fish_completion(const CLI::App& program);

}  // namespace cortado
