#pragma once

#include <string>
#include <vector>

namespace cortado {

struct JobStart {
  int ranks = 1;
  std::vector<std::string> launcher;  // "mpiexec", its options; "-n RANKS" and the command follow
  std::vector<std::string> command;   // of every rank: its program, by its whole path, and arguments
  int seconds_to_start = 60;          // until every rank must have said hello
  int stall_seconds = 60;             // until a job that stands still is ended; 0: never
  int peer_seconds = 60;              // until a host that cannot be reached is given up
};

// Starts the ranks and watches them until all have ended; returns the exit code. A rank that is gone, or that
// ends with an error, stops the whole job: one message to stderr, and 3 or the rank's own code. So does a job
// that stands still (stall.h), and a launcher that is gone. What the ranks print is passed on, without the
// launcher's own words about an end that this process reports. SIGINT, SIGTERM and SIGHUP are passed on. When
// this process is killed, the ranks end by themselves. Throws UserError where nothing can be started. Run by
// a process without other threads.
int run_job(const JobStart& start);

}  // namespace cortado
