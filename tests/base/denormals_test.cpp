#include "cortado/base/denormals.h"

#include <gtest/gtest.h>
#include <thread>

#include "cortado/base/compute_threads.h"

#include "tests/base/denormals.h"

namespace cortado {
namespace {

TEST(Denormals, CountAsZeroOnAllComputeThreadsWithinAScope) {
  const ComputeThreads threads(3);
  ASSERT_EQ(testing::threads_that_flush(), 0);
  {
    const FlushedDenormals outer;
    EXPECT_EQ(testing::threads_that_flush(), 3);
    { const FlushedDenormals inner; }
    EXPECT_EQ(testing::threads_that_flush(), 3);
    const ComputeThreads more(4);  // a new thread computes as the one that made it
    EXPECT_EQ(testing::threads_that_flush(), 4);
  }
  EXPECT_EQ(testing::threads_that_flush(), 0);
}

TEST(Denormals, CountAsZeroOnAThreadOfOnesOwn) {
  bool before = true, after = false;
  std::thread([&] {
    before = testing::flushes_denormals();
    flush_denormals();
    after = testing::flushes_denormals();
  }).join();
  EXPECT_FALSE(before);
  EXPECT_TRUE(after);
  EXPECT_FALSE(testing::flushes_denormals());
}

}  // namespace
}  // namespace cortado
