#pragma once

#include <csignal>
#include <string>
#include <vector>

#include "cortado/job/hosts_file.h"

namespace cortado {

// What a job is started with.
struct JobStart {
  int ranks = 1;
  std::vector<std::string> launcher;  // "mpiexec", its options; "-n RANKS" and the command follow
  std::vector<std::string> command;   // of every rank: its program, by its whole path, and arguments
  int seconds_to_start = 60;          // until every rank must have said hello
  int stall_seconds = 60;             // until a job that stands still is ended; 0: never
  int peer_seconds = 60;              // until a host that cannot be reached is given up
  std::string listen;                 // the address of this host at which ranks find it; empty: every one
  int restarts = 0;                   // how often the job may be started again
  int min_ranks = 1;                  // on no fewer ranks than these
  std::vector<int> stop_signals{SIGINT, SIGTERM};  // that ask the ranks to end
  int restarts_done = 0;
  HostsWatch* hosts_file = nullptr;       // must outlive the job; null: there is none
  Hosts hosts;                            // of it, on which the job runs
  bool wants_hosts = false;               // it names others by now
  int moves_done = 0;                     // to other hosts
  bool trained = false;                   // one of the starts before has
  std::vector<std::string> silent_hosts;  // JobEnd's of the start before: lost where none comes again
  std::string snapshot;  // that a job which is started again goes on from; empty: as its command says
  std::vector<std::string> kept;  // the files of that, where ranks that were left have written them
};

}  // namespace cortado
