#include "cortado/base/core_sharing.h"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <gtest/gtest.h>
#include <thread>

#include "cortado/base/affinity.h"
#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;

void look_later(CoreSharing& sharing) {
  std::this_thread::sleep_for(110ms);
  sharing.look();
}

// So many looks in a row that find others at work, however late they are.
void look_beside_others(CoreSharing& sharing, Seconds& delay, int looks) {
  for (; looks > 0; --looks) {
    delay.count += 100;
    look_later(sharing);
  }
}

// Seconds that the processor computed for this process.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Seconds that the processor computes while compute threads have nothing to do.
double wasted() {
  const ComputeThreads threads(2);
  const double before = processor_seconds();
  for (int i = 0; i < 30; ++i) {
    parallel_for(2, [](int64_t) {});
    std::this_thread::sleep_for(3ms);
  }
  return processor_seconds() - before;
}

TEST(CoreSharing, SleepsBesideOthersAndSpinsAgainOnceTheyHaveLeft) {
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  look_later(sharing);
  EXPECT_FALSE(sharing.sleeping());
  look_beside_others(sharing, delay, 1);
  EXPECT_FALSE(sharing.sleeping());
  look_beside_others(sharing, delay, 1);
  EXPECT_TRUE(sharing.sleeping());
  for (int quiet = 0; quiet < 2; ++quiet) {
    look_later(sharing);
    EXPECT_TRUE(sharing.sleeping());
  }
  look_beside_others(sharing, delay, 1);  // they are back
  for (int quiet = 0; quiet < 2; ++quiet) look_later(sharing);
  EXPECT_TRUE(sharing.sleeping());
  look_later(sharing);
  EXPECT_FALSE(sharing.sleeping());
}

// Threads that sleep may be delayed for ever: only spinning shows that others have left.
TEST(CoreSharing, TriesNowAndThenHowItIsToSpin) {
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  look_beside_others(sharing, delay, 2);
  for (const int patience : {10, 20}) {
    look_beside_others(sharing, delay, patience - 1);
    EXPECT_TRUE(sharing.sleeping());
    look_beside_others(sharing, delay, 1);
    EXPECT_FALSE(sharing.sleeping());
    look_beside_others(sharing, delay, 1);  // they are there still
    EXPECT_TRUE(sharing.sleeping());
  }
}

TEST(CoreSharing, AnotherOfLowPriorityDoesNotCount) {
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  delay.count += 0.005;
  look_later(sharing);
  EXPECT_FALSE(sharing.sleeping());
}

TEST(CoreSharing, HasATeamForLoopsBesideOthers) {
  const ComputeThreads threads(2);
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  EXPECT_EQ(sharing.team(), nullptr);
  look_beside_others(sharing, delay, 2);
  EXPECT_NE(sharing.team(), nullptr);
  for (int quiet = 0; quiet < 3; ++quiet) look_later(sharing);
  EXPECT_EQ(sharing.team(), nullptr);
}

int processors() {
  const cpu_set_t set = thread_processors();
  return CPU_COUNT(&set);
}

// Whether the helpers of the team, and OpenMP's threads beside the caller, keep away from a processor.
bool helpers_avoid(ThreadTeam& team, int processor) {
  std::atomic<bool> avoid{true};
  std::atomic<int> begun{0};
  const auto caller = std::this_thread::get_id();
  const auto check = [&] {
    const cpu_set_t set = thread_processors();
    if (std::this_thread::get_id() != caller && CPU_ISSET(static_cast<size_t>(processor), &set))
      avoid = false;
  };
  team.run(2, [&](int) {
    ++begun;
    while (begun < 2) std::this_thread::yield();
    check();
  });
  on_each_thread([&](int) { check(); });
  return avoid;
}

TEST(CoreSharing, KeepsACoreForTheCallerUntilItIsTaken) {
  if (processors() < 2) GTEST_SKIP() << "needs two processors";
  const ComputeThreads threads(2);
  const int before = processors();
  Seconds delay, own_delay;
  CoreSharing sharing([&] { return delay; }, [&] { return own_delay; });
  look_beside_others(sharing, delay, 2);
  ASSERT_TRUE(sharing.team() && sharing.team()->own());
  const int own = *sharing.team()->own();
  {
    const ThreadTeam::Scope loops(sharing.team());
    EXPECT_EQ(processors(), 1);
    EXPECT_EQ(sched_getcpu(), own);
    EXPECT_TRUE(helpers_avoid(*sharing.team(), own));
  }
  EXPECT_EQ(processors(), before);

  for (int look = 0; look < 5; ++look) {
    ASSERT_TRUE(sharing.team()->own());
    own_delay.count += 100;
    look_beside_others(sharing, delay, 1);
  }
  ASSERT_TRUE(sharing.team());
  EXPECT_FALSE(sharing.team()->own());
  const ThreadTeam::Scope loops(sharing.team());
  EXPECT_EQ(processors(), before);
  EXPECT_FALSE(helpers_avoid(*sharing.team(), own));
}

TEST(CoreSharing, KeepsNoCoreWhereThreadsAreMore) {
  const ComputeThreads threads(processors() + 1);
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  look_beside_others(sharing, delay, 2);
  ASSERT_TRUE(sharing.team());
  EXPECT_FALSE(sharing.team()->own());
}

TEST(CoreSharing, OneThreadNeedsNoTeam) {
  const ComputeThreads one(1);
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  look_beside_others(sharing, delay, 2);
  EXPECT_TRUE(sharing.sleeping());
  EXPECT_EQ(sharing.team(), nullptr);
}

TEST(CoreSharing, ObeysTheEnvironment) {
  ASSERT_EQ(setenv("OMP_WAIT_POLICY", "active", 1), 0);
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  unsetenv("OMP_WAIT_POLICY");
  look_beside_others(sharing, delay, 2);
  EXPECT_FALSE(sharing.sleeping());
}

TEST(CoreSharing, SleepingThreadsLeaveTheProcessorToOthers) {
  Seconds delay;
  CoreSharing sharing([&] { return delay; });
  const double spinning = wasted();
  look_beside_others(sharing, delay, 2);
  ASSERT_TRUE(sharing.sleeping());
  EXPECT_LT(wasted(), spinning / 3);  // OpenMP's
  const ThreadTeam::Scope loops(sharing.team());
  EXPECT_LT(wasted(), spinning / 3);
}

TEST(CoreSharing, CountsThreadsThatWantTheSameCore) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const ComputeThreads threads(1);
  const Seconds before = CoreSharing::ready_without_core();
  const auto end = std::chrono::steady_clock::now() + 200ms;
  auto compute = [&] {
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  std::thread other(compute);
  compute();
  // This thread waited for about half of the time.
  EXPECT_GT(CoreSharing::ready_without_core().count - before.count, 0.03);
  other.join();
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

}  // namespace
}  // namespace cortado
