#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cortado {

// Command-line words in one form: "-solver=F" and "--sighup_effect" become "--solver=F" and
// "--sighup-effect". Words after "--" and negative numbers stay as they are.
std::vector<std::string> normalized_arguments(int count, const char* const* words);

// The command line of `cortado` with its words as they were typed, as a shell takes them.
std::string command_line(int count, const char* const* words);

// The value of the last --NAME VALUE or --NAME=VALUE in normalized arguments, before they are parsed.
std::optional<std::string> option_value(const std::vector<std::string>& words, const std::string& name);

// Throws UserError for the first word that `app` or its chosen subcommand did not take, with the nearest
// option or subcommand.
void refuse_unknown_arguments(const CLI::App& app);

}  // namespace cortado
