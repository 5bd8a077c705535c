#pragma once

#include <memory>
#include <string>

#include "cortado/job/rank.h"

namespace cortado {

// This process's part in a job, from the start of a command to its end. One at a time.
class JobMembership {
 public:
  // Joins the process that started this one as a rank, if one did. Throws PeerError, or UserError where that
  // process is said to be there but no launcher gave this one a rank.
  JobMembership();
  ~JobMembership();
  JobMembership(const JobMembership&) = delete;
  JobMembership& operator=(const JobMembership&) = delete;

  // The command is over: reports to the parent, or, where there is none, prints the message and ends the
  // job's other ranks. Returns the exit code; with another than 0 inside a job it does not return.
  int leave(int code, const std::string& message = "");

  // This process as a rank that a parent watches; null: none does.
  static JobRank* watched_rank();

 private:
  std::unique_ptr<JobRank> rank_;
};

// Prints "cortado: error: MESSAGE" to the standard error, after all that was printed before.
void print_error_line(const std::string& message);

}  // namespace cortado
