#include "cortado/train/same_start.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"

namespace cortado {
namespace {

// The message that each of three ranks gets, empty where it gets none; rank 2 has `facts` of its own.
std::vector<std::string> messages(const std::vector<StartFact>& usual,
                                  const std::vector<StartFact>& of_rank_2) {
  std::vector<std::string> messages(3);
  LocalJob(3).run([&](Communicator& ranks) {
    try {
      check_same_start(ranks, ranks.rank() == 2 ? of_rank_2 : usual);
    } catch (const UserError& error) {
      messages[static_cast<size_t>(ranks.rank())] = error.what();
    }
  });
  return messages;
}

TEST(SameStart, EveryRankNamesTheFirstDifference) {
  const std::vector<StartFact> usual = {{"version of cortado", "0.1.0"}, {"net n", "a"}, {"solver s", "b"}};
  for (const std::string& message : messages(usual, usual)) EXPECT_EQ(message, "");
  std::vector<StartFact> other = usual;
  other[1].value = "A", other[2].value = "B";
  for (const std::string& message : messages(usual, other))
    EXPECT_EQ(message.find("rank 2 does not have the net n of rank 0"), 0u) << message;
  other = usual;
  other[0].value = "0.2.0";
  for (const std::string& message : messages(usual, other))
    EXPECT_EQ(message.find("rank 2 does not have the version of cortado of rank 0"), 0u) << message;
}

}  // namespace
}  // namespace cortado
