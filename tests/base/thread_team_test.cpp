#include "cortado/base/thread_team.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <mutex>
#include <set>
#include <thread>
#include <vector>
#include <xmmintrin.h>

#include "cortado/base/denormals.h"
#include "cortado/base/parallel_for.h"

namespace cortado {
namespace {

TEST(ThreadTeam, RunsEachPartOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadTeam team(threads);
    for (int job = 0; job < 3000; ++job) {
      std::vector<int> runs(static_cast<size_t>(job % 17));
      team.run(job % 17, [&](int part) { ++runs[static_cast<size_t>(part)]; });
      ASSERT_TRUE(std::ranges::all_of(runs, [](int count) { return count == 1; })) << "job " << job;
    }
  }
}

// Parts that wait for each other need a thread each: helpers come, though they had fallen asleep.
TEST(ThreadTeam, HelpersWakeForAJob) {
  ThreadTeam team(3);
  for (int job = 0; job < 20; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic<int> begun{0};
    team.run(3, [&](int) {
      ++begun;
      while (begun < 3) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 3);
  }
}

// The caller sleeps until the last helper has ended.
TEST(ThreadTeam, WaitsForPartsThatHelpersHaveBegun) {
  ThreadTeam team(2);
  const auto caller = std::this_thread::get_id();
  for (int job = 0; job < 5; ++job) {
    std::atomic<int> begun{0};
    std::atomic<bool> ended{false};
    team.run(2, [&](int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      if (std::this_thread::get_id() == caller) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ended = true;
    });
    EXPECT_TRUE(ended);
  }
}

// More parts than threads: whoever is there takes them, though another is held up for long.
TEST(ThreadTeam, AThreadThatIsHeldUpLeavesPartsToOthers) {
  ThreadTeam team(2);
  std::atomic<int> begun{0}, ended{0};
  team.run(10, [&](int) {
    if (++begun == 1)
      while (ended < 9) std::this_thread::yield();
    ++ended;
  });
  EXPECT_EQ(ended, 10);
}

TEST(ThreadTeam, LoopsOfTheScopeRunOnItInMoreRanges) {
  const ComputeThreads threads(3);
  const auto ranges = [](int64_t count) {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> found;
    parallel_ranges(count, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      found.insert({begin, end});
    });
    return found;
  };
  using Ranges = std::set<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(ranges(7), (Ranges{{0, 2}, {2, 4}, {4, 7}}));
  ThreadTeam team(3);
  {
    const ThreadTeam::Scope loops(&team);
    EXPECT_EQ(ThreadTeam::current(), &team);
    EXPECT_EQ(ranges(3), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
    const Ranges many = ranges(1000);
    EXPECT_EQ(many.size(), 12U);
    int64_t covered = 0;
    for (const auto& [begin, end] : many) {
      EXPECT_EQ(begin, covered);
      covered = end;
    }
    EXPECT_EQ(covered, 1000);
    std::thread([] { EXPECT_EQ(ThreadTeam::current(), nullptr); }).join();
    {
      const ThreadTeam::Scope openmp(nullptr);
      EXPECT_EQ(ThreadTeam::current(), nullptr);
    }
    EXPECT_EQ(ThreadTeam::current(), &team);
  }
  EXPECT_EQ(ThreadTeam::current(), nullptr);
}

TEST(ThreadTeam, LoopsWithinPartsRunInTheirThread) {
  const ComputeThreads threads(2);
  ThreadTeam team(2);
  const ThreadTeam::Scope loops(&team);
  std::atomic<int> calls{0}, elsewhere{0};
  parallel_for(2, [&](int64_t) {
    EXPECT_EQ(compute_threads(), 1);
    const auto here = std::this_thread::get_id();
    parallel_for(5, [&](int64_t) {
      ++calls;
      if (std::this_thread::get_id() != here) ++elsewhere;
    });
  });
  EXPECT_EQ(calls, 10);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(compute_threads(), 2);
}

// Both threads run a part: each waits for the other.
TEST(ThreadTeam, HelpersTreatDenormalsAsTheCallerDoes) {
  ThreadTeam team(2);
  const auto flushing = [&] {
    std::atomic<int> begun{0}, flush{0};
    team.run(2, [&](int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      if ((_mm_getcsr() & 0x8040) == 0x8040) ++flush;
    });
    return flush.load();
  };
  EXPECT_EQ(flushing(), 0);
  {
    const FlushedDenormals flushed;
    EXPECT_EQ(flushing(), 2);
  }
  EXPECT_EQ(flushing(), 0);
}

// As kernels of oneDNN ask (kernels/onednn/overflow.h).
TEST(ThreadTeam, TheCallerNotesExceptionsOfHelpers) {
  ThreadTeam team(2);
  const auto caller = std::this_thread::get_id();
  const auto overflows = [&](float factor) {
    _mm_setcsr(_mm_getcsr() & ~unsigned{_MM_EXCEPT_MASK});
    std::atomic<int> begun{0};
    team.run(2, [&](int) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      volatile float value = 1e30f;
      if (std::this_thread::get_id() != caller) value = value * factor;
    });
    return (_mm_getcsr() & _MM_EXCEPT_OVERFLOW) != 0;
  };
  EXPECT_FALSE(overflows(1));
  EXPECT_TRUE(overflows(1e30f));
  EXPECT_FALSE(overflows(1));
}

}  // namespace
}  // namespace cortado
