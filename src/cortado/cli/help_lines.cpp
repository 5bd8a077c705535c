#include "cortado/cli/help_lines.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <sstream>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/nearest_name.h"
#include "cortado/base/text.h"

namespace cortado {
namespace {

constexpr size_t names_width = 34, text_width = 84;

std::string broken_into_lines(const std::string& text) {
  std::string lines;
  size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; length += word.size()) {
    if (length > 0 && length + 1 + word.size() > text_width) {
      lines += '\n';
      length = 0;
    } else if (length > 0) {
      lines += ' ';
      ++length;
    }
    lines += word;
  }
  return lines;
}

class LinesFormatter : public CLI::Formatter {
 public:
  LinesFormatter() { column_width(names_width); }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = value_text(*option);
    return value.empty() ? "" : " " + value;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return broken_into_lines(option_text(*option));
  }
};

// Exit codes as one text.
std::string exit_code_lines() {
  std::string text = "Exit codes:";
  for (const auto& [code, meaning] : exit_codes())
    text += fmt::format("{}{} {}", code == 0 ? " " : "; ", code, meaning);
  return broken_into_lines(text);
}

constexpr std::string_view before_examples = "Examples:\n", before_example = "  ";

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<LinesFormatter>(); }

std::string help_text(const CLI::App& command) {
  return command.get_formatter()->make_help(&command, words_of(command), CLI::AppFormatMode::Normal);
}

std::string help_footer(const std::vector<std::string>& examples) {
  std::string text(examples.empty() ? "" : before_examples);
  for (const std::string& example : examples) text += fmt::format("{}{}\n", before_example, example);
  if (!examples.empty()) text += "\n";
  return text + exit_code_lines();
}

std::string value_text(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  return option.get_type_name() + (option.get_required() ? " REQUIRED" : "") +
         (option.get_expected_max() > 1 ? " ..." : "");
}

std::string option_text(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return option.get_description() + (value.empty() ? "" : "; default: " + value);
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "TEXT:{f32,bf16}"
  const size_t begin = type.find(":{"), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return split_list(type.substr(begin + 2, end - begin - 2));
}

std::vector<std::string> examples_of(const CLI::App& command) {
  std::vector<std::string> examples;
  std::istringstream lines(command.get_footer());
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(before_example)) examples.push_back(line.substr(before_example.size()));
  return examples;
}

const std::vector<ExitCodeText>& exit_codes() {
  static const std::vector<ExitCodeText> codes = {
      {0, "done"},
      {2, "wrong input or a full disk, with one line that says what and where"},
      {3, "another rank is gone"},
      {70, "a fault of Cortado itself"}};
  return codes;
}

std::vector<const CLI::App*> commands_in(const CLI::App& command) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* inner : command.get_subcommands(nullptr)) commands.push_back(inner);
  return commands;
}

const CLI::App& command_named(const CLI::App& program, const std::string& name) {
  if (name.empty()) return program;
  std::vector<std::string> names;
  for (const CLI::App* command : commands_in(program)) {
    if (command->get_name() == name) return *command;
    names.push_back(command->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw UserError(fmt::format("there is no command '{}'{}", name, did_you_mean(name, known)));
}

std::string words_of(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return (parent ? words_of(*parent) + " " : "") + command.get_name();
}

}  // namespace cortado
