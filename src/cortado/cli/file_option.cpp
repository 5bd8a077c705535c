#include "cortado/cli/file_option.h"

#include <string>

namespace cortado {

void refuse_empty_names(CLI::App& command, std::initializer_list<const char*> options) {
  for (const std::string option : options) {
    const bool list = option == "--weights";
    const auto complaint = [list](const std::string& text) -> std::string {
      const bool empty = text.empty() || (list && ("," + text + ",").find(",,") != std::string::npos);
      return empty ? "the name of a file is empty; give one, or leave the option out" : "";
    };
    command.get_option(option)->check(complaint, "FILE");
  }
}

}  // namespace cortado
