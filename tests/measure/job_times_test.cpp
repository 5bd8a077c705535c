#include "cortado/measure/job_times.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

class JobTimesTest : public ::testing::Test {
 protected:
  JobTimesTest() { setenv("CORTADO_CACHE", folder_.file("cache").c_str(), 1); }
  ~JobTimesTest() override { unsetenv("CORTADO_CACHE"); }

  ScratchFolder folder_;
  std::unique_ptr<Communicator> job_ = make_single_communicator();
};

// What was tried is known to the next job, also where nothing else was measured in the same one.
TEST_F(JobTimesTest, KeepsWhatWasTried) {
  JobTimes(*job_).save();  // measures the machine and an update
  {
    JobTimes costs(*job_);
    EXPECT_FALSE(costs.machine_measured());
    EXPECT_FALSE(costs.known("iteration of a net"));
    costs.keep("iteration of a net", {0.25});
    EXPECT_EQ(costs.known("iteration of a net"), Seconds{0.25});
    costs.save();
  }
  JobTimes costs(*job_);
  EXPECT_EQ(costs.known("iteration of a net"), Seconds{0.25});
  EXPECT_FALSE(costs.known("iteration of another net"));
}

TEST_F(JobTimesTest, ForgetsWhatIsNotSaved) {
  JobTimes(*job_).keep("iteration of a net", {0.25});
  EXPECT_FALSE(JobTimes(*job_).known("iteration of a net"));
}

}  // namespace
}  // namespace cortado
