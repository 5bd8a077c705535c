#include "cortado/base/thread_team.h"

#include <chrono>
#include <climits>
#include <fmt/format.h>
#include <fstream>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <xmmintrin.h>

#include "cortado/base/affinity.h"
#include "cortado/base/compute_threads.h"
#include "cortado/base/error.h"

namespace cortado {
namespace {

// About what it takes to wake a thread; and longer than the system's clock (4 ms at 250 Hz) lets a helper
// wait for its core.
constexpr std::chrono::microseconds spinning{20}, spinning_apart{5000};
constexpr uint64_t parts_mask = 0xffff;

thread_local ThreadTeam* current_team = nullptr;

// Sleeps while the word is `seen`, or shorter (futex(2)).
void sleep_on(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// Whether `holds` comes true within that time.
template <typename Condition>
bool spin_until(Condition&& holds, std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (holds()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

cpu_set_t all_but(std::optional<int> processor) {
  cpu_set_t set = thread_processors();
  if (processor) CPU_CLR(static_cast<size_t>(*processor), &set);
  return set;
}

}  // namespace

ThreadTeam* ThreadTeam::current() { return current_team; }

ThreadTeam::Scope::Scope(ThreadTeam* team) : before_(std::exchange(current_team, team)) {
  if (!team || !team->own_) return;
  processors_before_ = thread_processors();
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(static_cast<size_t>(*team->own_), &own);
  keep_thread_on(own);
}
ThreadTeam::Scope::~Scope() {
  if (processors_before_) keep_thread_on(*processors_before_);
  current_team = before_;
}

ThreadTeam::ThreadTeam(int threads, std::optional<int> own)
    : own_(own), others_(all_but(own)), ids_(static_cast<size_t>(threads - 1)) {
  try {
    for (std::atomic<int>& id : ids_)
      helpers_.emplace_back([this, &id] {
        id = gettid();
        if (own_) keep_thread_on(others_);
        help();
      });
  } catch (const std::system_error& error) {
    leave();
    throw UserError(
        fmt::format("the system gives this process no more threads: {}; use fewer threads, or "
                    "raise `ulimit -u` or `ulimit -v`",
                    error.code().message()));
  }
}

ThreadTeam::~ThreadTeam() { leave(); }

void ThreadTeam::leave() {
  leave_ = true;
  ++jobs_;
  wake(jobs_);
}

void ThreadTeam::run_job(int parts, Job job) {
  ensure(parts >= 0 && std::cmp_less_equal(parts, parts_mask), "a job has few parts");
  const ComputeThreads one(1);
  job_ = job;
  float_mode_ = _mm_getcsr();
  unfinished_ = static_cast<uint32_t>(parts);
  const uint32_t number = jobs_ + 1;
  jobs_left_ = uint64_t{number} * (parts_mask + 1) + static_cast<uint64_t>(parts);
  jobs_ = number;
  if (sleeping_helpers_ > 0) wake(jobs_);
  for (int part; (part = take_part()) >= 0; --unfinished_) job_.call(job_.function, part);
  if (!spin_until([&] { return unfinished_ == 0; }, own_ ? spinning_apart : spinning)) {
    caller_sleeps_ = true;
    while (const uint32_t unfinished = unfinished_) sleep_on(unfinished_, unfinished);
    caller_sleeps_ = false;
  }
  if (const unsigned notes = exceptions_.exchange(0)) _mm_setcsr(_mm_getcsr() | notes);
}

// A part that nobody had begun, which is the calling thread's now; none: -1. Until it has ended, the caller
// waits and job_ stays.
int ThreadTeam::take_part() {
  uint64_t left = jobs_left_;
  do {
    if ((left & parts_mask) == 0) return -1;
  } while (!jobs_left_.compare_exchange_weak(left, left - 1));
  return static_cast<int>(left & parts_mask) - 1;
}

void ThreadTeam::help_with(int part) {
  constexpr unsigned notes = _MM_EXCEPT_MASK;
  _mm_setcsr(float_mode_ & ~notes);
  job_.call(job_.function, part);
  exceptions_ |= _mm_getcsr() & notes;
  if (--unfinished_ == 0 && caller_sleeps_) wake(unfinished_);
}

void ThreadTeam::help() {
  set_compute_threads(1);
  while (!leave_) {
    const uint32_t seen = jobs_;
    for (int part; (part = take_part()) >= 0;) help_with(part);
    if (spin_until([&] { return jobs_ != seen; }, spinning)) continue;
    ++sleeping_helpers_;
    sleep_on(jobs_, seen);
    --sleeping_helpers_;
  }
}

Seconds ThreadTeam::ready_without_core() const {
  double nanoseconds = 0;
  for (const std::atomic<int>& id : ids_) {
    double computed = 0, waited = 0;
    if (std::ifstream(fmt::format("/proc/self/task/{}/schedstat", id.load())) >> computed >> waited)
      nanoseconds += waited;
  }
  return {nanoseconds * 1e-9};
}

}  // namespace cortado
