#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <mpi.h>

#include "tests/api/nets.h"

// Run by an MPI launcher: a training on the ranks that it started is the one of a rank alone.
namespace cortado::api {
namespace {

class Losses : public Observer {
 public:
  void iteration(const Iteration& iteration) override { of.push_back(iteration.loss); }
  std::vector<double> of;
};

struct Trained {
  std::vector<double> losses;
  Tensor weight;
};

Trained train(const TrainerOptions& options) {
  Losses losses;
  Trainer trainer(small_solver(), Data().fill("data", fill_bars), options);
  trainer.observe(losses);
  trainer.step(8);
  return {losses.of, trainer.parameter("ip1/weight")};
}

void expect_trained_as_alone(const Job& job) {
  const Trained alone = train({.threads = 1});
  EXPECT_LT(alone.losses.back(), alone.losses.front());
  for (const char* strategy : {"data", "model", "spatial"}) {
    const Trained shared = train({.job = job, .strategy = strategy, .threads = 1});
    ASSERT_EQ(shared.losses.size(), alone.losses.size());
    for (size_t i = 0; i < alone.losses.size(); ++i)
      EXPECT_NEAR(shared.losses[i], alone.losses[i], 1e-4 * alone.losses[0]) << strategy << " " << i;
    ASSERT_EQ(shared.weight.values.size(), alone.weight.values.size());
    for (size_t i = 0; i < alone.weight.values.size(); ++i)
      ASSERT_NEAR(shared.weight.values[i], alone.weight.values[i], 2e-3) << strategy << " " << i;
  }
}

int launched() { return std::atoi(std::getenv("CORTADO_TEST_RANKS")); }

// Begins MPI, and ends it.
TEST(LaunchedJob, TrainsAsARankAlone) {
  {
    const Job job = Job::launched();
    EXPECT_EQ(job.size(), launched());
    EXPECT_LT(job.rank(), job.size());
    expect_trained_as_alone(job);
  }
  EXPECT_THROW(Job::launched(), UserError);  // MPI has ended
}

// One job after another in a program that begins MPI itself, which they leave as it is.
TEST(LaunchedJob, LeavesMpiToTheProgram) {
  int provided = 0, rank = -1, ended = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 2; ++i) {
    const Job job = Job::launched();
    EXPECT_EQ(job.size(), launched());
    EXPECT_EQ(job.rank(), rank);
    if (i > 0) expect_trained_as_alone(job);
  }
  MPI_Finalized(&ended);
  EXPECT_EQ(ended, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}

}  // namespace
}  // namespace cortado::api
