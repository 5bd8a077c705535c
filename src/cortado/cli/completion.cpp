#include "cortado/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "cortado/base/text.h"
#include "cortado/cli/help_lines.h"

namespace cortado {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_type_size() != 0; }

// "-h", "--help"
std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> spellings(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : spellings(*option)) names.push_back(name);
  return names;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// The words after the program's name by which a command is reached: "", "train", "data images".
std::string path_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  if (parent == nullptr) return "";
  const std::string before = path_of(*parent);
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

// A command and all commands within it.
std::vector<const CLI::App*> tree_of(const CLI::App& command) {
  std::vector<const CLI::App*> all = {&command};
  for (const CLI::App* inner : commands_in(command))
    for (const CLI::App* each : tree_of(*inner)) all.push_back(each);
  return all;
}

constexpr const char* bash_frame = R"(# bash completion for {0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local place= commands= options= choices= at
  COMPREPLY=()
  # --option=value comes as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((at = 1; at < COMP_CWORD; ++at)); do
    case "$place ${{COMP_WORDS[at]}}" in
{1}    esac
  done
  case "$place" in
{2}  esac
  case "$place $previous" in
{3}  esac
  if [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $commands && $previous != -* ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$current"))
  fi
}}
complete -o default -F _{0} {0}
)";

// Text within single quotes of a shell.
std::string single_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// The same for _arguments of zsh, which reads brackets and colons.
std::string zsh_text(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') shown += '\\';
    shown += c;
  }
  return shown;
}

std::string zsh_option(const CLI::Option& option) {
  if (!option.nonpositional()) return "";
  std::string value;
  if (const std::vector<std::string> choices = choices_of(option); !choices.empty())
    value = fmt::format(":value:({})", fmt::join(choices, " "));
  else if (takes_value(option))
    value = ":value:_files";
  std::string lines;
  for (const std::string& name : spellings(option)) {
    const std::string spec = (takes_value(option) ? "*" : "") + name + (takes_value(option) ? "=" : "");
    lines +=
        fmt::format(" \\\n    {}", single_quoted(spec + "[" + zsh_text(option_text(option)) + "]" + value));
  }
  return lines;
}

std::string zsh_function(const CLI::App& command) {
  std::string name = path_of(command);
  for (char& c : name) c = c == ' ' ? '_' : c;
  const std::string function = name.empty() ? "" : "_" + name;
  const std::vector<const CLI::App*> inner = commands_in(command);
  std::string text;
  for (const CLI::App* each : inner) text += zsh_function(*each);
  text += fmt::format("_cortado{}() {{\n", function);
  std::string options;
  for (const CLI::Option* option : command.get_options()) options += zsh_option(*option);
  if (inner.empty()) return text + fmt::format("  _arguments{} \\\n    '*:file:_files'\n}}\n", options);
  text += "  local curcontext=$curcontext state line\n  local -a commands=(\n";
  for (const CLI::App* each : inner)
    text +=
        fmt::format("    {}\n", single_quoted(each->get_name() + ":" + zsh_text(each->get_description())));
  text +=
      fmt::format("  )\n  _arguments -C{} \\\n    '1:command:->command' '*::argument:->argument'\n", options);
  text += "  case $state in\n    command) _describe command commands ;;\n    argument) case $line[1] in\n";
  for (const CLI::App* each : inner)
    text += fmt::format("      {0}) _cortado{1}_{0} ;;\n", each->get_name(), function);
  return text + "    esac ;;\n  esac\n}\n";
}

// The condition under which fish completes within a command.
std::string fish_condition(const CLI::App& command) {
  const std::vector<const CLI::App*> inner = commands_in(command);
  std::string condition;
  for (const CLI::App* within = &command; within->get_parent() != nullptr; within = within->get_parent())
    condition = fmt::format("__fish_seen_subcommand_from {}{}{}", within->get_name(),
                            condition.empty() ? "" : "; and ", condition);
  if (inner.empty()) return condition;
  return fmt::format("{}not __fish_seen_subcommand_from {}", condition.empty() ? "" : condition + "; and ",
                     fmt::join(names_of(inner), " "));
}

std::string fish_option(const CLI::Option& option, const std::string& start) {
  if (!option.nonpositional()) return "";
  std::string line = start;
  for (const std::string& name : option.get_snames()) line += " -s " + name;
  for (const std::string& name : option.get_lnames()) line += " -l " + name;
  if (const std::vector<std::string> choices = choices_of(option); !choices.empty())
    line += " -x -a " + single_quoted(fmt::format("{}", fmt::join(choices, " ")));
  else if (takes_value(option))
    line += " -r -F";
  return line + " -d " + single_quoted(option_text(option)) + "\n";
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  std::string places, words, choices;
  for (const CLI::App* command : tree_of(program)) {
    const std::string place = path_of(*command);
    if (command->get_parent() != nullptr)
      places += fmt::format("      \"{} {}\") place=\"{}\" ;;\n", path_of(*command->get_parent()),
                            command->get_name(), place);
    words +=
        fmt::format("    \"{}\") commands=\"{}\" options=\"{}\" ;;\n", place,
                    fmt::join(names_of(commands_in(*command)), " "), fmt::join(spellings(*command), " "));
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : spellings(*option))
        if (!choices_of(*option).empty())
          choices += fmt::format("    \"{} {}\") choices=\"{}\" ;;\n", place, name,
                                 fmt::join(choices_of(*option), " "));
  }
  return fmt::format(fmt::runtime(bash_frame), program.get_name(), places, words, choices);
}

std::string zsh_completion(const CLI::App& program) {
  return "#compdef cortado\n" + zsh_function(program) + "_cortado \"$@\"\n";
}

std::string fish_completion(const CLI::App& program) {
  std::string text = "# fish completion for cortado\n";
  for (const CLI::App* command : tree_of(program)) {
    const std::string start =
        fmt::format("complete -c {} -n {}", program.get_name(), single_quoted(fish_condition(*command)));
    for (const CLI::App* inner : commands_in(*command))
      text += fmt::format("{} -f -a {} -d {}\n", start, inner->get_name(),
                          single_quoted(inner->get_description()));
    for (const CLI::Option* option : command->get_options()) text += fish_option(*option, start);
  }
  return text;
}

}  // namespace cortado
