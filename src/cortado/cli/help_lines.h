#pragma once

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>
#include <vector>

namespace cortado {

// Returns a formatter that breaks descriptions into lines.
std::shared_ptr<CLI::Formatter> help_formatter();

// Returns what `--help` of a command prints.
std::string help_text(const CLI::App& command);

// Returns the text below the options of a command: examples, each a command line, and all exit codes.
std::string help_footer(const std::vector<std::string>& examples = {});

// What help, manual and completions say of an option: what its value is ("TEXT REQUIRED"; "" of a flag),
// and what it does, with its default.
std::string value_text(const CLI::Option& option);
std::string option_text(const CLI::Option& option);
// The few words that the option takes ("f32", "bf16"); empty: any text.
std::vector<std::string> choices_of(const CLI::Option& option);

// The parts of help_footer().
std::vector<std::string> examples_of(const CLI::App& command);
struct ExitCodeText {
  int code = 0;
  std::string meaning;
};
const std::vector<ExitCodeText>& exit_codes();

// The commands within a command, in the order of help.
std::vector<const CLI::App*> commands_in(const CLI::App& command);
// The command of that name, or for "" the program itself. Throws UserError with the nearest name.
const CLI::App& command_named(const CLI::App& program, const std::string& name);
// The words by which a command is called: "cortado data images".
std::string words_of(const CLI::App& command);

}  // namespace cortado
