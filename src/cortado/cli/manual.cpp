#include "cortado/cli/manual.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "cortado/cli/help_lines.h"

namespace cortado {
namespace {

// Text as roff shows it: hyphens that can be copied, no escapes, no line that begins a request.
std::string roff(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    const bool begins = shown.empty() || shown.back() == '\n';
    if (begins && (c == '.' || c == '\'')) shown += "\\&";
    if (c == '\\')
      shown += "\\e";
    else if (c == '-')
      shown += "\\-";
    else
      shown += c;
  }
  return shown;
}

std::string capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// An argument of a request, whatever is in it.
std::string quoted(const std::string& text) {
  std::string shown = "\"";
  for (const char c : text) shown += c == '"' ? "\"\"" : std::string(1, c);
  return shown + "\"";
}

// "COMMAND [OPTIONS] [images]": COMMAND where there are commands within; positional arguments by their names.
std::string arguments_of(const CLI::App& command) {
  std::string text = commands_in(command).empty() ? "" : " \\fICOMMAND\\fP";
  text += " [\\fIOPTIONS\\fP]";
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) continue;
    const std::string name = "\\fI" + roff(option->get_name(true)) + "\\fP";
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

std::string option_entry(const CLI::Option& option) {
  std::string names = option.nonpositional() ? "" : "\\fI" + roff(option.get_name(true)) + "\\fP";
  for (const std::string& name : option.get_snames())
    names += (names.empty() ? "" : ", ") + ("\\fB\\-" + roff(name)) + "\\fP";
  for (const std::string& name : option.get_lnames())
    names += (names.empty() ? "" : ", ") + ("\\fB\\-\\-" + roff(name)) + "\\fP";
  const std::string value = option.nonpositional() ? value_text(option) : "";
  return fmt::format(".TP\n{}{}\n{}\n", names, value.empty() ? "" : " " + roff(value),
                     roff(option_text(option)));
}

std::string option_entries(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) text += option_entry(*option);
  return text;
}

// Commands that have no page of their own (the verbs of `cortado data`), each with its options.
std::string inner_commands(const CLI::App& command) {
  std::string text;
  for (const CLI::App* inner : commands_in(command))
    text += fmt::format(".SS {}\n.PP\n\\fB{}\\fP{}\n.PP\n{}\n{}", quoted(inner->get_name()),
                        roff(words_of(*inner)), arguments_of(*inner), roff(inner->get_description()),
                        option_entries(*inner));
  return text;
}

std::string list_of_commands(const CLI::App& program) {
  std::string text;
  for (const CLI::App* command : commands_in(program))
    text += fmt::format(".TP\n\\fB{}\\fP(1)\n{}\n", roff(manual_name(*command)),
                        roff(command->get_description()));
  return text;
}

std::string examples(const CLI::App& command) {
  std::string text;
  for (const std::string& example : examples_of(command))
    text += fmt::format(".PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(example));
  return text.empty() ? "" : ".SH EXAMPLES\n" + text;
}

std::string exit_status() {
  std::string text = ".SH \"EXIT STATUS\"\n";
  for (const auto& [code, meaning] : exit_codes()) text += fmt::format(".TP\n{}\n{}\n", code, roff(meaning));
  return text;
}

}  // namespace

std::string manual_name(const CLI::App& command) {
  std::string name = words_of(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string manual_page(const CLI::App& command, std::string_view version) {
  const bool whole = command.get_parent() == nullptr;
  std::string text =
      fmt::format(".TH {} 1 \"\" {} \"User Commands\"\n", quoted(roff(capitals(manual_name(command)))),
                  quoted(roff(fmt::format("cortado {}", version))));
  text += fmt::format(".SH NAME\n{} \\- {}\n", roff(manual_name(command)), roff(command.get_description()));
  text += fmt::format(".SH SYNOPSIS\n\\fB{}\\fP{}\n", roff(words_of(command)), arguments_of(command));
  text += ".SH OPTIONS\n" + option_entries(command);
  if (!commands_in(command).empty())
    text += ".SH COMMANDS\n" + (whole ? list_of_commands(command) : inner_commands(command));
  text += examples(command) + exit_status();
  return text + fmt::format(".SH \"SEE ALSO\"\n\\fB{}\\fP(1)\n", whole ? "cortado\\-help" : "cortado");
}

}  // namespace cortado
