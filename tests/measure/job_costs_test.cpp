// Costs of a job by measured times, and predictions by those costs.
#include "cortado/measure/job_costs.h"

#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"
#include "cortado/measure/job_prediction.h"
#include "cortado/measure/measured_kernels.h"

#include "tests/measure/kept.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;
using testing::made_up;
using testing::small_convolution;

class JobCostsTest : public testing::KeptCache {
 protected:
  explicit JobCostsTest(int ranks = 1) : KeptCache(ranks) {}

  std::unique_ptr<Communicator> job_ = make_single_communicator();
  const Network net_ = testing::zoo_net("lenet", 8, {1, 28, 28});
};

TEST_F(JobCostsTest, MeasureEachTaskOnceAndTellItOnce) {
  {
    JobCosts costs(*job_, "", tell_);
    EXPECT_EQ(told_, "");
    for (const int64_t filters : {4, 5, 4}) costs.costs().measure(small_convolution(filters), 0);
    EXPECT_EQ(costs.measurements(), 2);
    EXPECT_EQ(told_, "measuring what layers take on this machine; kept in " + folder() + "\n");
    costs.save();
  }
  told_.clear();
  JobCosts costs(*job_, "", tell_);
  EXPECT_GT(costs.costs().measure(small_convolution(4), 0).forward, Seconds{});
  EXPECT_EQ(costs.measurements(), 0);
  EXPECT_EQ(told_, "");
}

TEST_F(JobCostsTest, AreWhatIsKept) {
  const Task task = small_convolution();
  JobCosts costs(*job_, "");
  costs.times().keep(task, "", made_up("any"));
  EXPECT_EQ(costs.costs().measure(task, 0).total(), made_up("any").total());
  EXPECT_EQ(costs.measurements(), 0);
}

// Kernels of one name are another problem than those of the list.
TEST_F(JobCostsTest, AreOfTheirKernelsAlone) {
  const Task task = small_convolution();
  JobCosts costs(*job_, fast_math);
  EXPECT_EQ(costs.kernels(), fast_math);
  costs.times().keep(task, "", made_up("any"));
  EXPECT_NE(costs.costs().measure(task, 0).total(), made_up("any").total());
  EXPECT_EQ(costs.measurements(), 1);
}

TEST_F(JobCostsTest, OfMeasuredKernelsAreTheFastestOfAConvolution) {
  const Task task = small_convolution();
  JobCosts costs(*job_, measured_kernels);
  Seconds least{1e9};
  for (const Implementation& one : implementations_of(task))
    costs.times().keep(task, one.name, made_up(problem_of(task, one.name)));
  const AlgorithmTable table = Algorithms(costs.times()).tables({task}).front();
  for (const Algorithm& one : table.algorithms)
    if (one.time) least = std::min(least, one.time->total());
  EXPECT_EQ(costs.costs().measure(task, 0).total(), least);
}

// Each computing step of a net takes what is kept of its task, and no other steps but the update take time.
TEST_F(JobCostsTest, PredictWhatIsKeptOfEachTask) {
  const CompileOptions options{.strategies = NodeStrategies(net_.nodes().size())};
  {
    JobTimes times(*job_);
    for (const Work& work : compile(net_, options).program.works)
      if (work.kind == Work::Kind::compute) times.keep(work.task, "", made_up(problem_of(work.task)));
    times.save();
  }
  const JobPrediction predicted = predict_on_job(net_, options, *job_, tell_);
  EXPECT_EQ(told_, "");  // nothing is measured
  const Program& program = predicted.prediction.program;
  ASSERT_EQ(predicted.prediction.steps.size(), program.steps.size());
  double all = 0;
  for (StepIndex s : indices(program.steps)) {
    const Step& step = program.steps[s];
    const Seconds seconds = predicted.prediction.steps[s];
    all += seconds.count;
    if (!step.is<steps::Compute>()) {
      EXPECT_LT(seconds.count, 1) << name_of(step);
      continue;
    }
    const TaskTime time = made_up(problem_of(program.works[step.work()].task));
    const Seconds expected = step.runs(Pass::forward)            ? time.forward
                             : step.runs(Pass::backward_weights) ? time.backward_weights
                                                                 : time.backward;
    EXPECT_EQ(seconds, expected) << s.value();
  }
  EXPECT_GT(all, 10'000);
  EXPECT_NEAR(predicted.simulated.simulation.iteration.count, all, 1e-6 * all);
  EXPECT_EQ(predicted.nodes, std::vector{0});
  EXPECT_EQ(predicted.machine.nodes.size(), 1u);
}

// By a device's queue, with its own kernels; kept apart from what the processor takes.
TEST_F(JobCostsTest, PredictWhatADeviceTakes) {
  const auto emulated = device::make_emulated();
  const Network net = testing::zoo_net("lenet", 1, {1, 28, 28});
  const CompileOptions options{.strategies = NodeStrategies(net.nodes().size()),
                               .kernels = {.kernels = gpu_kernels}};
  const JobPrediction predicted = predict_on_job(net, options, *job_, tell_, *emulated);
  EXPECT_THAT(told_, HasSubstr("measuring what layers take on this machine"));
  EXPECT_EQ(predicted.machine.nodes[0].devices[0].name, "emulated");
  JobTimes there(*job_, {}, *emulated), here(*job_);
  for (const Work& work : compile(net, options).program.works) {
    if (work.kind != Work::Kind::compute) continue;
    EXPECT_TRUE(there.known(work.task, ""));
    EXPECT_FALSE(here.known(work.task, ""));
  }
  told_.clear();
  predict_on_job(net, options, *job_, tell_, *emulated);
  EXPECT_EQ(told_, "");
}

class PredictionOfRanks : public JobCostsTest {
 protected:
  PredictionOfRanks() : JobCostsTest(2) {}
};

TEST_F(PredictionOfRanks, IsTheSameAtEveryRankAndKept) {
  const CompileOptions options{.strategies = resolve(load_strategy("data", net_, 2), net_, 2, "data"),
                               .ranks = 2};
  std::vector<std::optional<JobPrediction>> predicted(2);
  const auto predict = [&] {
    LocalJob(2).run([&](Communicator& job) {
      predicted[static_cast<size_t>(job.rank())] = predict_on_job(net_, options, job, tell_);
    });
  };
  predict();
  EXPECT_THAT(told_, HasSubstr("measuring what layers take on this machine"));
  EXPECT_EQ(predicted[0]->simulated.simulation.iteration, predicted[1]->simulated.simulation.iteration);
  EXPECT_EQ(predicted[0]->machine, predicted[1]->machine);
  EXPECT_EQ(predicted[0]->prediction.steps, predicted[1]->prediction.steps);
  EXPECT_EQ(predicted[0]->nodes, (std::vector{0, 0}));
  // A rank computes one step at a time.
  const Prediction& prediction = predicted[0]->prediction;
  double computing = 0;
  for (StepIndex s : indices(prediction.program.steps))
    if (prediction.program.steps[s].lane == Lane::compute) computing += prediction.steps[s].count;
  EXPECT_GT(computing, 0);
  EXPECT_GE(predicted[0]->simulated.simulation.iteration.count, computing * (1 - 1e-9));
  told_.clear();
  predict();
  EXPECT_EQ(told_, "");  // all is kept
}

}  // namespace
}  // namespace cortado
