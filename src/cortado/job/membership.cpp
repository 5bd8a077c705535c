#include "cortado/job/membership.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <thread>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/mpi.h"
#include "cortado/job/wire.h"

namespace cortado {
namespace {

// The JobRank of this process's JobMembership, for watched_rank(); null: none.
JobRank* watched = nullptr;

// Without a parent each rank prints its own message. What stops one rank often stops all: the others give
// rank 0 the time to print it and to end them. A launcher needs a moment to pass it on before the job ends.
void print_message(const std::string& message) {
  using namespace std::chrono_literals;
  const std::optional<LaunchedRank> launched = launched_rank();
  if (launched && launched->rank > 0) std::this_thread::sleep_for(2s);
  print_error_line(message);
  std::fflush(stderr);
  if (launched) std::this_thread::sleep_for(500ms);
}

}  // namespace

JobMembership::JobMembership() {
  std::optional<LaunchedRank> launched = launched_rank();
  if (!launched && std::getenv(job_variable) != nullptr) {
    throw UserError(
        fmt::format("{} is set, but no MPI launcher that Cortado knows gave this process a rank; start "
                    "the ranks with mpiexec, mpirun or srun, or unset the variable",
                    job_variable));
  }
  if (launched) rank_ = JobRank::join(launched->rank);
  watched = rank_.get();
}

JobMembership::~JobMembership() { watched = nullptr; }

int JobMembership::leave(int code, const std::string& message) {
  std::fflush(stdout);
  if (!message.empty() && !rank_) print_message(message);
  if (rank_) rank_->goodbye(code, message);
  if (code == 0) return code;
  if (rank_) _exit(code);  // MPI's own ending would wait for the others
  abort_mpi_job(code);
  return code;
}

JobRank* JobMembership::watched_rank() { return watched; }

void print_error_line(const std::string& message) {
  std::fflush(stdout);
  // fmt::print would throw where it cannot.
  std::fputs(fmt::format("cortado: error: {}\n", message).c_str(), stderr);
}

}  // namespace cortado
