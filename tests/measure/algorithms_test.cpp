#include "cortado/measure/algorithms.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "cortado/base/parallel_for.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/kernels/kernel.h"
#include "cortado/layers/convolution.h"

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

Task small_convolution(bool cut) {
  ConvolutionOptions options{.num_output = 8, .kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}};
  Task task =
      whole_task(std::make_shared<Convolution>(options), Phase::train, std::vector<Shape>{{2, 16, 8, 8}}, 1);
  task.cut = cut;
  return task;
}

class AlgorithmsTables : public ::testing::Test {
 protected:
  AlgorithmsTables() {
    setenv("CORTADO_CACHE", folder_.file("cache").c_str(), 1);
    set_compute_threads(1);
  }
  ~AlgorithmsTables() override { unsetenv("CORTADO_CACHE"); }
  ScratchFolder folder_;
};

// The first listed is the one that runs unasked; the pick is the least of those measured.
TEST_F(AlgorithmsTables, PickTheFastestAndKeepWhatIsThorough) {
  const auto job = make_single_communicator();
  JobTimes times(*job);
  const Task task = small_convolution(false);
  const AlgorithmTable quick = Algorithms(times).tables({task}, Algorithms::Effort::quick).front();
  EXPECT_EQ(times.known(task, quick.algorithms[static_cast<size_t>(quick.pick)].name), nullptr);
  const AlgorithmTable table = Algorithms(times).tables({task}).front();
  ASSERT_GE(table.pick, 0);
  const Algorithm& pick = table.algorithms[static_cast<size_t>(table.pick)];
  for (const Algorithm& other : table.algorithms) {
    EXPECT_EQ(other.time.has_value(), other.refusal.empty() && other.pruned.empty()) << other.name;
    if (!other.time) continue;
    EXPECT_LE(pick.time->total().count, other.time->total().count) << other.name;
  }
  EXPECT_EQ(table.algorithms[static_cast<size_t>(table.listed)].name, select_kernel(task).implementation);
  ASSERT_NE(times.known(task, pick.name), nullptr);
  EXPECT_EQ(times.known(task, pick.name)->total(), pick.time->total());
}

TEST_F(AlgorithmsTables, AreTheSameOnAllRanks) {
  std::vector<std::string> told(2);
  LocalJob(2).run([&](Communicator& job) {
    JobTimes times(job);
    for (const AlgorithmTable& table : Algorithms(times).tables(
             {small_convolution(true), small_convolution(false)}, Algorithms::Effort::quick))
      for (const Algorithm& one : table.algorithms)
        told[static_cast<size_t>(job.rank())] += one.name + one.refusal + one.pruned +
                                                 std::to_string(one.time ? one.time->total().count : 0) +
                                                 "\n";
  });
  EXPECT_NE(told[0], "");
  EXPECT_EQ(told[0], told[1]);
}

}  // namespace
}  // namespace cortado
