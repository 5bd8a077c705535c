#include "cortado/app/help.h"

namespace cortado {

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
