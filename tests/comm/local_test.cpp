#include <gtest/gtest.h>
#include <thread>

#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"

#include "tests/comm/checks.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;

class LocalRanks : public testing::TestWithParam<std::tuple<int, size_t>> {};

TEST_P(LocalRanks, Check) {
  auto [ranks, check] = GetParam();
  LocalJob(ranks).run(communicator_checks()[check].run);
}

INSTANTIATE_TEST_SUITE_P(Of, LocalRanks,
                         testing::Combine(testing::Values(1, 2, 3, 4, 6, 8),
                                          testing::Range<size_t>(0, communicator_checks().size())),
                         [](const auto& info) {
                           return communicator_checks()[std::get<1>(info.param)].name + "On" +
                                  std::to_string(std::get<0>(info.param));
                         });

TEST(SingleCommunicator, PassesTheChecks) {
  auto single = make_single_communicator();
  for (const CommunicatorCheck& check : communicator_checks()) check.run(*single);
}

TEST(LocalJob, AFailedRankEndsTheOthers) {
  LocalJob job(4);
  std::vector<std::string> seen(4);
  auto body = [&](Communicator& c) {
    if (c.rank() == 2) throw UserError("no such file");
    try {
      if (c.rank() == 0) c.barrier();
      std::vector<float> values(10);
      std::vector<int> group = {0, 1, 2, 3};
      auto sum = c.allreduce(group, values.data(), 10);
      if (c.rank() == 1) complete(*sum);
      auto exchange = c.exchange({}, {{2, values.data(), 10}}, 5);
      if (c.rank() == 3) complete(*exchange);
    } catch (const PeerError& error) {
      seen[c.rank()] = error.what();
      throw;
    }
  };
  EXPECT_THROW(job.run(body), UserError);
  for (int rank : {0, 1, 3}) EXPECT_EQ(seen[rank], "rank 2 failed: no such file") << rank;
}

std::string message_of(const std::function<void(Communicator&)>& body) {
  try {
    LocalJob(3, 100ms).run(body);
  } catch (const PeerError& error) {
    return error.what();
  }
  return "";
}

TEST(LocalJob, NamesWhoIsMissing) {
  EXPECT_EQ(message_of([](Communicator& c) {
              if (c.rank() != 1) c.barrier();
            }),
            "ranks 0,1,2 wait in vain for ranks 1");
  EXPECT_EQ(message_of([](Communicator& c) {
              float value = 0;
              std::vector<int> group = {0, 2};
              if (c.rank() == 0) complete(*c.allreduce(group, &value, 1));
            }),
            "ranks 0,2 wait in vain for ranks 2");
  EXPECT_EQ(message_of([](Communicator& c) {
              float value = 0;
              if (c.rank() == 0) complete(*c.exchange({}, {{1, &value, 1}}, 0));
            }),
            "rank 0 waits in vain for rank 1");
  EXPECT_EQ(message_of([](Communicator& c) {
              float value = 0;
              if (c.rank() == 2) c.receive(0, {&value, 1});
            }),
            "rank 2 waits in vain for rank 0");
}

TEST(LocalJob, RunsAgainAfterAFailure) {
  LocalJob job(2);
  EXPECT_THROW(job.run([](Communicator&) { throw UserError("once"); }), UserError);
  job.run([](Communicator& c) { EXPECT_EQ(c.sum(1), 2); });
}

}  // namespace
}  // namespace cortado
