#include "cortado/cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"

namespace cortado {
namespace {

std::string normalized_option(std::string_view word) {
  size_t dashes = word.starts_with("--") ? 2 : 1;
  size_t end = std::min(word.find('='), word.size());
  std::string name(word.substr(dashes, end - dashes));
  std::replace(name.begin(), name.end(), '_', '-');
  bool letter = name.size() == 1 && dashes == 1;  // -h
  return (letter ? "-" : "--") + name + std::string(word.substr(end));
}

bool is_option(std::string_view word) {
  size_t name = std::min(word.find_first_not_of('-'), word.size());
  return (name == 1 || name == 2) && name < word.size() &&
         std::isalpha(static_cast<unsigned char>(word[name]));
}

[[noreturn]] void refuse(const CLI::App& app, const std::string& word, bool after_subcommand) {
  std::string place = after_subcommand ? fmt::format("'cortado {}' ", app.get_name()) : "'cortado' ";
  std::vector<std::string> names;
  if (is_option(word)) {
    for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
    std::string name = word.substr(0, word.find('='));
    std::vector<std::string_view> known(names.begin(), names.end());
    throw UserError(fmt::format("{}has no option {}{}", place, name, did_you_mean(name, known)));
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  std::vector<std::string_view> known(names.begin(), names.end());
  if (known.empty()) throw UserError(fmt::format("{}does not take '{}'", place, word));
  throw UserError(fmt::format("{}has no command '{}'{} (known: {})", place, word, did_you_mean(word, known),
                              joined(known)));
}

void refuse_remaining(const CLI::App& app, bool after_subcommand) {
  std::vector<std::string> remaining = app.remaining();
  if (!remaining.empty()) refuse(app, remaining.front(), after_subcommand);
  for (const CLI::App* command : app.get_subcommands()) refuse_remaining(*command, true);
}

}  // namespace

std::vector<std::string> normalized_arguments(int count, const char* const* words) {
  std::vector<std::string> arguments;
  bool options = true;
  for (int i = 1; i < count; ++i) {
    std::string_view word = words[i];
    if (word == "--") options = false;
    arguments.push_back(options && is_option(word) ? normalized_option(word) : std::string(word));
  }
  return arguments;
}

std::string command_line(int count, const char* const* words) {
  std::string line = "cortado";
  for (int i = 1; i < count; ++i) line += " " + shell_word(words[i]);
  return line;
}

std::optional<std::string> option_value(const std::vector<std::string>& words, const std::string& name) {
  std::optional<std::string> value;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) value = words[i + 1];
    if (words[i].starts_with(name + "=")) value = words[i].substr(name.size() + 1);
  }
  return value;
}

void refuse_unknown_arguments(const CLI::App& app) { refuse_remaining(app, false); }

}  // namespace cortado
