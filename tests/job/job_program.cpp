// A small program on ranks for the tests: its first argument says what it does as a rank, its second how many
// ranks it starts when it is not one, its fifth by which launcher (else this build's), its sixth the seconds
// until a job that stands still is ended, its seventh those until a host is given up, its eighth how often
// the job may be started again. Every rank prints its process id.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>

#include "cortado/base/activity.h"
#include "cortado/base/crash_guard.h"
#include "cortado/base/error.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/mpi.h"
#include "cortado/job/crash_handlers.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/rank.h"
#include "cortado/job/restarts.h"

namespace {

using namespace cortado;

volatile std::sig_atomic_t asked = 0;

// Sums over all ranks, one after the other, until `until()` says so; the same sum decides on every rank.
template <typename Until>
void sum_on(Communicator& communicator, JobRank* job, Until until) {
  std::vector<float> values(200000, 1.0f);
  std::vector<int> group(static_cast<size_t>(communicator.size()));
  std::iota(group.begin(), group.end(), 0);
  auto sum = communicator.allreduce(group, values.data(), static_cast<int64_t>(values.size()) - 1);
  for (int64_t iteration = 0; communicator.sum(until() ? 1 : 0) == 0; ++iteration) {
    std::fill(values.begin(), values.end(), 1.0f);
    const ActivityScope waiting("the sum of many values");
    sum->start();
    while (!sum->test()) std::this_thread::yield();
    if (job != nullptr) job->report_iteration(iteration);
  }
}

// "die 1 250": rank 1 kills itself after 250 milliseconds.
void die_later(int milliseconds, int signal = SIGKILL) {
  std::thread([milliseconds, signal] {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(getpid(), signal);
  }).detach();
}

// Each waits for the message of the next.
void wait_in_a_circle(Communicator& communicator) {
  float value = 0;
  communicator.receive((communicator.rank() + 1) % communicator.size(), {&value, 1});
}

int run_rank(const std::string& what, int number, int milliseconds) {
  fmt::print("pid {}\n", getpid());
  std::fflush(stdout);
  LaunchedRank launched = launched_rank().value();
  if (what == "absent" && launched.rank == number) pause();  // until a signal
  end_process_on_guarded_crash();
  std::unique_ptr<JobRank> job = JobRank::join(launched.rank);
  { const CrashGuard reading("a file"); }  // as the command, which has read files by now
  if (what == "idle") {                    // without MPI
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    job->goodbye(0);
    return 0;
  }
  if (what == "early" && launched.rank == number) _exit(5);
  int code = 0;
  std::string message;
  if (job->restarts() > 0 && number == 0) {
    fmt::print("goes on from '{}'\n", job->snapshot());
    std::fflush(stdout);  // a rank that is killed loses what is in the buffer
  }
  try {
    std::unique_ptr<Communicator> communicator = make_mpi_communicator();
    bool me = communicator->rank() == number;
    if (what == "die" && me) die_later(milliseconds);
    // "abort 1 500": rank 1 aborts; "shove 1 1500": because of rank 0, which has stopped by then but whose
    // connection ends later.
    if ((what == "abort" || what == "shove") && me) die_later(milliseconds, SIGABRT);
    if (what == "shove" && !me) die_later(milliseconds - 1000, SIGSTOP);
    std::signal(SIGTERM, [](int) { asked = 1; });
    if (what == "refuse" && me) throw UserError("there is no such file");
    if (what == "wordy" && me) throw UserError(std::string(5 << 20, 'w'));
    if (what == "circle") wait_in_a_circle(*communicator);
    // "compute 1 4000": rank 1 works for four seconds.
    if (what == "compute" && me) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    if (what == "stop" && me) die_later(milliseconds, SIGSTOP);
    if (what == "die" && me) fmt::print(stderr, "rank {} is to die\n", number);
    if (what == "snapshot" && me) job->report_snapshot(0, "/a/b c.safetensors");
    if (what == "snapshot" && me) die_later(milliseconds);
    if (what == "forever") {
      communicator->barrier();
      if (communicator->rank() == 0) fmt::print("all ready\n"), std::fflush(stdout);
    }
    const bool counted = what == "end" || what == "compute";
    int64_t left = counted ? 20 : -1;
    sum_on(*communicator, job.get(), [&] { return left-- == 0 || asked != 0; });
    // Another rank may have been asked first.
    if (!counted && communicator->rank() == 0) fmt::print("stopped by a signal\n");
  } catch (const UserError& error) {
    code = 2;
    message = error.what();
  } catch (const PeerError& error) {
    code = 3;
    message = error.what();
  }
  std::fflush(stdout);
  if (job) job->goodbye(code, message);
  if (code != 0) _exit(code);
  return code;
}

}  // namespace

int main(int count, char** words) {
  if (count < 5) return 2;
  std::string what = words[1];
  if (started_by_mpi()) return run_rank(what, std::atoi(words[3]), std::atoi(words[4]));
  JobStart start{.ranks = std::atoi(words[2]),
                 .launcher = split_words(count > 5 && *words[5] ? words[5] : mpi_launcher()),
                 .stall_seconds = count > 6 ? std::atoi(words[6]) : 60,
                 .peer_seconds = count > 7 ? std::atoi(words[7]) : 60,
                 .restarts = count > 8 ? std::atoi(words[8]) : 0};
  start.command.assign(words, words + 5);
  try {
    return run_job(start);
  } catch (const UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
