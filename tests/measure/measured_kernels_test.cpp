#include "cortado/measure/measured_kernels.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <mutex>

#include "cortado/base/parallel_for.h"
#include "cortado/comm/local/local_job.h"

#include "tests/base/scratch_folder.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

// Ranks that share weights must compute them alike, whoever is faster.
TEST(MeasuredKernels, AreTheSameOnAllRanksAndForHalvesOfABatch) {
  ScratchFolder folder;
  setenv("CORTADO_CACHE", folder.file("cache").c_str(), 1);
  set_compute_threads(1);
  const Network net = testing::zoo_net("lenet", 8, {1, 28, 28});
  const Strategy strategy = load_strategy("spatial", net, 2);
  std::vector<std::string> chosen(2);
  LocalJob(2).run([&](Communicator& job) {
    JobTimes times(job);
    CompileOptions options{
        .strategies = resolve(strategy, net, 2, "spatial"), .ranks = 2, .rank = job.rank()};
    options.kernels = choose_measured(net, options, times, Algorithms::Effort::quick);
    options.schedule.halves = true;
    for (const Work& work : compile(net, options).program.works) {
      if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
      chosen[static_cast<size_t>(job.rank())] +=
          std::to_string(work.nodes[0]) + " " + options.kernels.of_task(work.task) + "\n";
      EXPECT_NE(options.kernels.of_task(work.task), "");
    }
  });
  unsetenv("CORTADO_CACHE");
  EXPECT_NE(chosen[0], "");
  EXPECT_EQ(chosen[0], chosen[1]);
}

}  // namespace
}  // namespace cortado
