#include "cortado/base/core_sharing.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <numeric>
#include <omp.h>
#include <optional>
#include <sched.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cortado/base/affinity.h"
#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{100};
// Parts of the time that the compute threads together were ready but had no core. A neighbour of nice 19
// takes a few hundredths of a core; one of our own priority takes a third of one or more.
constexpr double beside_others = 0.25, alone = 0.12;
constexpr int looks_to_believe = 2;  // where a program starts, its own threads may share a core for a moment
constexpr int looks_to_trust = 3;    // a neighbour that pauses shortly has not left
// Threads that sleep are delayed by one of low priority, too: now and then only spinning shows who is there.
// So many looks later at first, twice as many each time that others are there still.
constexpr int first_patience = 10, last_patience = 160;
// Part of the time that the caller waits for a core of its own, above which others are there to stay; beside
// one or two neighbours that the system may move it is less.
constexpr double crowded = 0.5;
constexpr int looks_to_give_way = 5;

// What sched_setattr(2) takes; glibc has it from version 2.41 on.
struct SchedulingAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;  // ns
};

// Asks the kernel for this time slice for each compute thread of the caller (Linux 6.12 and later); 0: the
// usual one. A thread with a short slice gets its core as soon as it wakes, beside one with a long slice. Its
// share of the core stays the same. A refusal changes nothing.
void set_slices(std::chrono::nanoseconds slice) {
  on_each_thread([&](int) {
    SchedulingAttributes attributes{};
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
    if (attributes.policy != SCHED_OTHER) return;  // no other has such a slice
    attributes.runtime = static_cast<uint64_t>(slice.count());
    syscall(SYS_sched_setattr, 0, &attributes, 0);
  });
}

// OpenMP's threads beside the caller.
void keep_helpers_on(const cpu_set_t& processors) {
  on_each_thread([&](int thread) {
    if (thread > 0) keep_thread_on(processors);
  });
}

}  // namespace

// More sleeping OpenMP threads than there are cores. While it lives, libgomp takes the cores for
// oversubscribed and lets every thread sleep after 100 turns of spinning, in place of 300,000 (its manual,
// GOMP_SPINCOUNT).
class CoreSharing::SurplusThreads {
 public:
  SurplusThreads() {
    const int count = omp_get_num_procs() + 1;
    require_threads(count);
    holder_ = std::thread([&, count] {
#pragma omp parallel num_threads(count)
      {
#pragma omp master
        are_there_.count_down();
      }
      leave_.wait();
    });
    are_there_.wait();
  }
  ~SurplusThreads() {
    leave_.count_down();
    holder_.join();  // OpenMP's threads end with the thread that made them
  }

 private:
  std::latch are_there_{1}, leave_{1};
  std::thread holder_;
};

Seconds CoreSharing::ready_without_core() {
  std::vector<double> seconds(static_cast<size_t>(compute_threads()));
  on_each_thread([&](int thread) { seconds[static_cast<size_t>(thread)] = caller_without_core().count; });
  return {std::accumulate(seconds.begin(), seconds.end(), 0.0)};
}

Seconds CoreSharing::caller_without_core() {
  double computed = 0, waited = 0;
  std::ifstream("/proc/thread-self/schedstat") >> computed >> waited;
  return {waited * 1e-9};
}

CoreSharing::CoreSharing(Delay delay, Delay own_delay)
    : decided_by_environment_(std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")),
      last_look_(Clock::now()),
      delay_(std::move(delay)),
      own_delay_(std::move(own_delay)),
      last_delay_(delay_()),
      last_own_delay_(own_delay_()) {}

CoreSharing::~CoreSharing() { leave_off(); }

void CoreSharing::look() {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> passed = now - last_look_;
  if (decided_by_environment_ || passed < between_looks) return;
  try {
    adapt((delay().count - last_delay_.count) / passed.count());
    adapt_place((own_delay_().count - last_own_delay_.count) / passed.count());
  } catch (const UserError&) {
    leave_off();  // the system has no more threads for us: go on as before
  }
  last_look_ = Clock::now();
  last_delay_ = delay();
  last_own_delay_ = own_delay_();
}

Seconds CoreSharing::delay() const { return team_ ? delay_() + team_->ready_without_core() : delay_(); }

void CoreSharing::adapt(double delayed) {
  beside_looks_ = delayed > beside_others ? beside_looks_ + 1 : 0;
  quiet_looks_ = delayed < alone ? quiet_looks_ + 1 : 0;
  if (sleeping()) {
    trying_ = quiet_looks_ >= looks_to_trust || ++looks_asleep_ >= patience_;
    if (trying_) leave_off();
    return;
  }
  if (beside_looks_ >= (trying_ ? 1 : looks_to_believe)) {
    patience_ = trying_ ? std::min(2 * patience_, last_patience) : first_patience;
    share();
  }
  trying_ = false;
}

void CoreSharing::adapt_place(double own_delayed) {
  crowded_looks_ = team_ && team_->own() && own_delayed > crowded ? crowded_looks_ + 1 : 0;
  if (crowded_looks_ >= looks_to_give_way) make_team(false);
}

void CoreSharing::share() {
  looks_asleep_ = 0;
  surplus_ = std::make_unique<SurplusThreads>();
  set_slices(std::chrono::microseconds(100));  // helpers inherit it
  const cpu_set_t processors = thread_processors();
  make_team(CPU_COUNT(&processors) >= compute_threads());
}

void CoreSharing::make_team(bool apart) {
  team_.reset();
  if (compute_threads() == 1) return;
  team_ =
      std::make_unique<ThreadTeam>(compute_threads(), apart ? std::optional(sched_getcpu()) : std::nullopt);
  keep_helpers_on(team_->others());
}

void CoreSharing::leave_off() {
  team_.reset();
  if (surplus_) {
    keep_helpers_on(thread_processors());
    set_slices({});
  }
  surplus_.reset();
}

}  // namespace cortado
