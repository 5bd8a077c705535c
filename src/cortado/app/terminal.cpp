#include "cortado/app/terminal.h"

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sstream>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cortado/comm/mpi.h"

namespace cortado {
namespace {

// "80 HOST /dev/pts/3": set for the ranks by a process whose standard output is a terminal.
constexpr const char* terminal_variable = "CORTADO_TERMINAL";
constexpr int usual_columns = 80;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, HOST_NAME_MAX);
  return name;
}

int columns_of(int descriptor, int otherwise) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

// A rank's own output may be a pipe: it asks the terminal itself, where that is on its host.
int columns_told() {
  const char* told = std::getenv(terminal_variable);
  std::istringstream words(told == nullptr ? "" : told);
  int columns = usual_columns;
  std::string host, path;
  words >> columns >> host >> path;
  static const int terminal =
      host == host_name() ? open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
  return columns_of(terminal, columns > 0 ? columns : usual_columns);
}

}  // namespace

// A rank is told by the command that started the job: its own output may be a pipe to a terminal (MPICH) or a
// terminal to a file (OpenMPI).
bool writes_to_terminal() {
  return launched_rank() ? std::getenv(terminal_variable) != nullptr : isatty(STDOUT_FILENO) != 0;
}

int terminal_columns() { return launched_rank() ? columns_told() : columns_of(STDOUT_FILENO, usual_columns); }

void tell_ranks_of_terminal() {
  if (isatty(STDOUT_FILENO) == 0) {
    unsetenv(terminal_variable);
    return;
  }
  const char* path = ttyname(STDOUT_FILENO);
  setenv(terminal_variable,
         fmt::format("{} {} {}", columns_of(STDOUT_FILENO, usual_columns), host_name(), path ? path : "")
             .c_str(),
         1);
}

void TerminalLine::draw(std::string text) {
  // In the last column some terminals begin a new line at once.
  text.resize(std::min(text.size(), static_cast<size_t>(std::max(1, terminal_columns() - 1))));
  drawn_ = std::move(text);
  fmt::print("\r\x1b[K{}", drawn_);
  std::fflush(stdout);
}

void TerminalLine::clear() {
  if (!drawn_.empty()) fmt::print("\r\x1b[K");
  std::fflush(stdout);
  drawn_.clear();
}

void TerminalLine::print_above(const std::string& line) {
  fmt::print("\r\x1b[K{}\n", line);
  draw(std::move(drawn_));
}

void TerminalLine::finish() {
  if (!drawn_.empty()) fmt::print("\n");
  std::fflush(stdout);
  drawn_.clear();
}

std::string clock_text(double seconds) {
  auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace cortado
