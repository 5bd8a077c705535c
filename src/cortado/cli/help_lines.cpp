#include "cortado/cli/help_lines.h"

#include <CLI/App.hpp>
#include <fmt/format.h>
#include <sstream>

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
    if (option->get_type_size() == 0) return "";
    return " " + option->get_type_name() + (option->get_required() ? " REQUIRED" : "") +
           (option->get_expected_max() > 1 ? " ..." : "");
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string value = option->get_default_str();
    return broken_into_lines(option->get_description() + (value.empty() ? "" : "; default: " + value));
  }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() { return std::make_shared<LinesFormatter>(); }

std::string help_footer(const std::vector<std::string>& examples) {
  std::string text = examples.empty() ? "" : "Examples:\n";
  for (const std::string& example : examples) text += "  " + example + "\n";
  if (!examples.empty()) text += "\n";
  return text +
         "Exit codes: 0 done; 2 wrong input or a full disk, with one line that says what and where; 3 "
         "another rank "
         "is gone;\n70 a fault of Cortado itself";
}

}  // namespace cortado
