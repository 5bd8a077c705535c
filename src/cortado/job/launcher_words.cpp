#include "cortado/job/launcher_words.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

namespace cortado {
namespace {

// How lines of MPICH's hydra and of OpenMPI's mpirun begin.
constexpr std::string_view beginnings[] = {
    "[mpiexec@",
    "[proxy:",
    "===================================================================================",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
    "=   PID ",
    "=   EXIT CODE: ",
    "=   CLEANING UP REMAINING PROCESSES",
    "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES",
    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ",
    "This typically refers to a problem with your application.",
    "Please see the FAQ page for debugging suggestions",
    "mpirun: ",
    "prterun: ",
};
constexpr std::string_view rule =
    "--------------------------------------------------------------------------";

enum class Whose { rank, launcher, unknown };

Whose by_beginning(std::string_view line, std::string_view beginning) {
  if (line.starts_with(beginning)) return Whose::launcher;
  return beginning.starts_with(line) ? Whose::unknown : Whose::rank;
}

// UCX's "[1760000000.123456] [host:...", and "[host:123] PMIX", "[host:123] ORTE" of OpenMPI.
Whose by_brackets(std::string_view line) {
  if (line.empty()) return Whose::unknown;
  if (line[0] != '[') return Whose::rank;
  const size_t close = line.find(']');
  const std::string_view inside = line.substr(1, close == line.npos ? line.npos : close - 1);
  const bool ucx = inside.find_first_not_of("0123456789.") == inside.npos;
  const size_t colon = inside.rfind(':');
  const bool process = colon != inside.npos && inside.find(' ') == inside.npos &&
                       inside.find_first_not_of("0123456789", colon + 1) == inside.npos;
  const bool host = colon == inside.npos && std::ranges::all_of(inside, [](unsigned char c) {
                      return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
                    });
  if (close == line.npos) return ucx || process || host ? Whose::unknown : Whose::rank;
  if (ucx && !inside.empty()) return by_beginning(line.substr(close + 1), " [");
  if (!process) return Whose::rank;
  for (std::string_view word : {" PMIX", " ORTE", " PRTE", " OPAL", " [["})
    if (Whose whose = by_beginning(line.substr(close + 1), word); whose != Whose::rank) return whose;
  return Whose::rank;
}

// An empty line goes with the next: MPICH puts one before its box.
std::string_view without_ends(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of('\n'), line.size()));
  if (line.ends_with('\n')) line.remove_suffix(1);
  return line;
}

Whose whose_is(std::string_view line) {
  line = without_ends(line);
  Whose whose = by_brackets(line);
  for (std::string_view beginning : beginnings) {
    const Whose by = by_beginning(line, beginning);
    if (by == Whose::launcher) return by;
    if (by == Whose::unknown) whose = by;
  }
  return whose;
}

bool names_host_file(const std::string& option) {
  for (const char* known : {"-f", "-machinefile", "--machinefile", "-hostfile", "--hostfile"})
    if (option == known) return true;
  return false;
}

}  // namespace

std::vector<std::string> split_words(const std::string& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (char c : line) {
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (quote != 0 && c == quote) {
      quote = 0;
      continue;
    } else if (quote == 0 && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == 0 || c != quote) words.back() += c;
  }
  return words;
}

bool is_host_list(const std::string& option) {
  for (const char* known : {"-hosts", "--hosts", "-host", "--host", "-H", "-w", "--nodelist"})
    if (option == known) return true;
  return false;
}

std::vector<std::string> split_list_of_hosts(const std::string& list) {
  std::vector<std::string> entries;
  std::istringstream names(list);
  for (std::string entry; std::getline(names, entry, ',');) entries.push_back(entry);
  return entries;
}

std::vector<std::string> hosts_named(const std::vector<std::string>& launcher) {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& text) {  // "a:2"
    if (!text.empty() && text[0] != '#') hosts.push_back(text.substr(0, text.find(':')));
  };
  for (size_t i = 0; i + 1 < launcher.size(); ++i) {
    if (is_host_list(launcher[i]))
      for (const std::string& entry : split_list_of_hosts(launcher[i + 1])) add(entry);
    if (!names_host_file(launcher[i])) continue;
    std::ifstream lines(launcher[i + 1]);
    for (std::string line; std::getline(lines, line);) add(line.substr(0, line.find_first_of(" \t")));
  }
  return hosts;
}

void LauncherWords::end_line(std::string& passed) {
  if (line_ == "\n") return;
  const bool is_rule = blocks_ && without_ends(line_) == rule;
  const bool launchers = is_rule || in_block_ || whose_is(line_) == Whose::launcher;
  in_block_ ^= is_rule;
  (launchers ? kept_ : passed) += line_;
  line_.clear();
}

std::string LauncherWords::pass(std::string_view text) {
  std::string passed;
  for (char c : text) {
    if (within_) {
      passed += c;
      within_ = c != '\n';
      continue;
    }
    line_ += c;
    if (c == '\n') {
      end_line(passed);
    } else if (!in_block_ && !(blocks_ && rule.starts_with(without_ends(line_))) &&
               whose_is(line_) == Whose::rank) {
      passed += line_;
      line_.clear();
      within_ = true;
    }
  }
  return passed;
}

std::string LauncherWords::end() {
  std::string passed;
  const bool launchers = in_block_ || whose_is(line_) == Whose::launcher;
  (launchers ? kept_ : passed) += line_;
  line_.clear();
  return passed;
}

}  // namespace cortado
