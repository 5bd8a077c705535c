#include "cortado/auto/choose_strategy.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "cortado/base/parallel_for.h"
#include "cortado/comm/local/local_job.h"

#include "tests/base/scratch_folder.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

class ChooseStrategy : public ::testing::Test {
 protected:
  ChooseStrategy() {
    setenv("CORTADO_CACHE", folder_.file("cache").c_str(), 1);
    set_compute_threads(1);
  }
  ~ChooseStrategy() override { unsetenv("CORTADO_CACHE"); }

  // What each rank gets, and what is told.
  std::vector<AutoChoice> choose(int ranks) {
    std::vector<AutoChoice> choices(static_cast<size_t>(ranks));
    LocalJob(ranks).run([&](Communicator& job) {
      const auto tell = [&](const std::string& line) { told_ += line + "\n"; };
      choices[static_cast<size_t>(job.rank())] = choose_strategy(net_, job, "", 1, tell);
    });
    return choices;
  }

  ScratchFolder folder_;
  std::string told_;
  const Network net_ = testing::zoo_net("lenet", 8, {1, 28, 28});
};

TEST_F(ChooseStrategy, HasNothingToChooseForOneRank) {
  const AutoChoice choice = choose(1)[0];
  EXPECT_FALSE(choice.planned);
  EXPECT_EQ(strategy_text(choice.strategy), strategy_text(built_in_strategy("single", net_, 1)));
  EXPECT_EQ(told_, "");
}

TEST_F(ChooseStrategy, TellsWhatItMeasuredAndKeepsIt) {
  const std::vector<AutoChoice> first = choose(2);
  EXPECT_TRUE(first[0].planned);
  EXPECT_FALSE(first[0].cached);
  EXPECT_GT(first[0].measurements, 0);
  EXPECT_GT(first[0].layers, 0u);
  EXPECT_GT(first[0].times_faster_than_data, 0);
  EXPECT_NE(told_.find("measuring what layers take on this machine; kept in "), std::string::npos) << told_;
  EXPECT_EQ(strategy_text(first[0].strategy), strategy_text(first[1].strategy));
  told_.clear();
  const std::vector<AutoChoice> second = choose(2);
  if (!second[0].cached) GTEST_SKIP() << "the machine has changed: its ranks were measured anew";
  EXPECT_EQ(second[0].measurements, 0);
  EXPECT_EQ(told_, "");
  EXPECT_EQ(strategy_text(second[0].strategy), strategy_text(first[0].strategy));
}

}  // namespace
}  // namespace cortado
