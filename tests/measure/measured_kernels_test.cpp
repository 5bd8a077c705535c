#include "cortado/measure/measured_kernels.h"

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"

#include "tests/measure/kept.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

class MeasuredKernels : public testing::KeptCache {
 protected:
  explicit MeasuredKernels(int ranks = 1) : KeptCache(ranks) {}

  CompileOptions options(const std::string& strategy, int rank = 0) const {
    return {
        .strategies = resolve(load_strategy(strategy, net_, 2), net_, 2, strategy), .ranks = 2, .rank = rank};
  }
  const Network net_ = testing::zoo_net("lenet", 8, {1, 28, 28});
};

// The convolutions of both ranks of a program, by layer, each problem once.
std::map<std::string, std::vector<Task>> convolutions(const Network& net, const CompileOptions& options) {
  std::map<std::string, std::vector<Task>> tasks;
  std::vector<std::string> problems;
  KernelProfile profile = KernelProfile::unknown();
  for (const Program& program : compile_job(net, options, profile)) {
    for (const Work& work : program.works) {
      if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
      const std::string problem = problem_of(work.task);
      if (std::ranges::find(problems, problem) != problems.end()) continue;
      problems.push_back(problem);
      tasks[net.nodes()[work.nodes[0]].name].push_back(work.task);
    }
  }
  return tasks;
}

// Returns, among all implementations, the one whose made-up times are least for the layer's tasks together.
std::string least(const std::vector<Task>& tasks, JobTimes& times) {
  std::string best;
  double best_seconds = 0;
  const std::vector<AlgorithmTable> tables = Algorithms(times).tables(tasks);
  for (const Algorithm& one : tables[0].algorithms) {
    double seconds = 0;
    bool everywhere = true;
    for (size_t i = 0; i < tasks.size(); ++i) {
      const auto& all = tables[i].algorithms;
      const auto found = std::ranges::find(all, one.name, &Algorithm::name);
      everywhere = everywhere && found != all.end() && found->refusal.empty() && found->pruned.empty();
      seconds += testing::made_up(problem_of(tasks[i], one.name)).total().count;
    }
    if (everywhere && (best.empty() || seconds < best_seconds)) best = one.name, best_seconds = seconds;
  }
  return best;
}

TEST_F(MeasuredKernels, AreTheFastestForAllTasksOfAWeightTogether) {
  const auto job = make_single_communicator();
  JobTimes times(*job);
  size_t several = 0;
  for (const char* strategy : {"data", "spatial", "model"}) {
    SCOPED_TRACE(strategy);
    const auto tasks = convolutions(net_, options(strategy));
    ASSERT_EQ(tasks.size(), 2u);
    for (const auto& [layer, of_layer] : tasks)
      for (const Task& task : of_layer)
        for (const Implementation& one : implementations_of(task))
          times.keep(task, one.name, testing::made_up(problem_of(task, one.name)));
    const KernelChoice choice = choose_measured(net_, options(strategy), times);
    for (const auto& [layer, of_layer] : tasks) {
      several += of_layer.size() > 1 ? 1 : 0;
      for (const Task& task : of_layer) EXPECT_EQ(choice.of_task(task), least(of_layer, times)) << layer;
    }
  }
  EXPECT_GT(several, 0u);
}

TEST_F(MeasuredKernels, LeaveOtherLayersToTheList) {
  const auto job = make_single_communicator();
  JobTimes times(*job);
  const KernelChoice choice = choose_measured(net_, options("data"), times, Algorithms::Effort::quick);
  EXPECT_EQ(choice.kernels, "");
  for (const Work& work : compile(net_, options("data")).program.works) {
    if (work.kind != Work::Kind::compute) continue;
    EXPECT_EQ(choice.of_task(work.task).empty(), !is_convolution(work.task)) << name_of(work, net_);
  }
}

class MeasuredKernelsOfRanks : public MeasuredKernels {
 protected:
  MeasuredKernelsOfRanks() : MeasuredKernels(2) {}
};

// Ranks that share weights must compute them alike, whoever is faster.
TEST_F(MeasuredKernelsOfRanks, AreTheSameOnAllRanksAndForHalvesOfABatch) {
  std::vector<std::string> chosen(2);
  LocalJob(2).run([&](Communicator& job) {
    JobTimes times(job);
    CompileOptions options = this->options("spatial", job.rank());
    options.kernels = choose_measured(net_, options, times, Algorithms::Effort::quick);
    options.schedule.halves = true;
    for (const Work& work : compile(net_, options).program.works) {
      if (work.kind != Work::Kind::compute || !is_convolution(work.task)) continue;
      chosen[static_cast<size_t>(job.rank())] +=
          net_.nodes()[work.nodes[0]].name + " " + options.kernels.of_task(work.task) + "\n";
      EXPECT_NE(options.kernels.of_task(work.task), "");
    }
  });
  EXPECT_NE(chosen[0], "");
  EXPECT_EQ(chosen[0], chosen[1]);
}

}  // namespace
}  // namespace cortado
