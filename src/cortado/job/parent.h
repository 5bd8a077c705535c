#pragma once

#include <string>
#include <vector>

namespace cortado {

struct JobStart {
  int ranks = 1;
  std::vector<std::string> launcher;  // "mpiexec", its options; "-n RANKS" and the command follow
  std::vector<std::string> command;   // of every rank: its program, by its whole path, and arguments
  int seconds_to_start = 60;          // until every rank must have said hello
};

// Starts the ranks and watches them until all have ended; returns the exit code. A rank that is gone, or that
// ends with an error, stops the whole job: one message to stderr, and 3 or the rank's own code. SIGINT,
// SIGTERM and SIGHUP are passed on to the ranks. When this process is killed, the ranks end by themselves.
// Throws UserError where nothing can be started. Run by a process without other threads.
int run_job(const JobStart& start);

// Words of a command line, separated by spaces; 'single' and "double" quotes keep words together.
std::vector<std::string> split_words(const std::string& line);

}  // namespace cortado
