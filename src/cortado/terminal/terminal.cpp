#include "cortado/terminal/terminal.h"

#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <fmt/format.h>
#include <sstream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace cortado {
namespace {

// "80 HOST /dev/pts/3": set for the ranks by a process whose standard output is a terminal.
constexpr const char* terminal_variable = "CORTADO_TERMINAL";
constexpr int usual_columns = 80;

bool is_rank = false;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, HOST_NAME_MAX);
  return name;
}

int columns_of(int descriptor, int otherwise) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

// Returns the columns of the terminal of the job. A rank's own output may be a pipe, so it asks that terminal
// itself if it is on this host; else it takes what the starter of the job said.
int columns_of_job() {
  const char* said = std::getenv(terminal_variable);
  std::istringstream words(said == nullptr ? "" : said);
  int columns = usual_columns;
  std::string host, path;
  words >> columns >> host >> path;
  static const int terminal =
      host == host_name() ? open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
  return columns_of(terminal, columns > 0 ? columns : usual_columns);
}

}  // namespace

void open_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", O_RDWR);
}

void follow_terminal_of_job() { is_rank = true; }

bool writes_to_terminal() {
  return is_rank ? std::getenv(terminal_variable) != nullptr : isatty(STDOUT_FILENO) != 0;
}

int terminal_columns() { return is_rank ? columns_of_job() : columns_of(STDOUT_FILENO, usual_columns); }

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

}  // namespace cortado
