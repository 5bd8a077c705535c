// What the parent makes of the ranks' answers.
#include "cortado/job/keeping.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class KeepingTest : public testing::Test {
 protected:
  explicit KeepingTest(int ranks = 3) {
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      peers_.push_back(std::make_unique<Peer>());
      peers_.back()->socket = LineSocket(Socket(ends[0]), 60);
      peers_.back()->rank = rank;
      peers_.back()->host = "h";
      ranks_.emplace_back(Socket(ends[1]), 60);
    }
    keeping_.begin(peers_, 4, 0s);
    for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(line_of(rank), "hold");
  }
  std::string line_of(int rank) {
    LineSocket& socket = ranks_[static_cast<size_t>(rank)];
    pollfd wait{socket.fd(), POLLIN, 0};
    if (poll(&wait, 1, 0) == 1) socket.receive();
    return socket.take_line().value_or("");
  }
  void say(int rank, const std::string& verb, const std::string& more) {
    std::istringstream words(more);
    EXPECT_TRUE(keeping_.hear(*peers_[static_cast<size_t>(rank)], verb, words));
  }
  std::string written(const std::string& name) {
    folder_.write(name, "");
    return folder_.file(name);
  }

  TemporaryFolder folder_;
  Peers peers_;
  std::vector<LineSocket> ranks_;
  Keeping keeping_;
};

TEST_F(KeepingTest, TakesTheNewestCompleteIterationThatAllHave) {
  say(0, "holds", "0 7 8 8");
  say(1, "holds", "0 6 7 7");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  say(2, "holds", "0 7 7 7");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(line_of(rank), "write 7 0 1 2");
  const std::string file = written("a b");
  say(0, "written", file);
  say(1, "written", "");
  EXPECT_FALSE(keeping_.done(peers_, 8s));
  say(2, "written", "");
  EXPECT_TRUE(keeping_.done(peers_, 8s));
  EXPECT_EQ(keeping_.result().iteration, 7);
  EXPECT_EQ(keeping_.result().files, std::vector{file});
  EXPECT_EQ(keeping_.result().why_not, "");
}

TEST_F(KeepingTest, TakesNoIterationThatNobodyKnowsToBeComplete) {
  for (int rank = 0; rank < 3; ++rank) say(rank, "holds", "0 6 7 6");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  EXPECT_EQ(line_of(0), "write 6 0 1 2");
}

TEST_F(KeepingTest, TakesNoneThatOneDoesNotHave) {
  say(0, "holds", "0 8 8 8");
  say(1, "holds", "0 7 7 7");
  say(2, "holds", "0 7 8 8");
  EXPECT_TRUE(keeping_.done(peers_, 1s));
  EXPECT_TRUE(keeping_.result().files.empty());
  EXPECT_THAT(keeping_.result().why_not, HasSubstr("no iteration in common"));
}

TEST_F(KeepingTest, WritesNothingThatASnapshotHas) {
  for (int rank = 0; rank < 3; ++rank) say(rank, "holds", "0 4 4 4");
  EXPECT_TRUE(keeping_.done(peers_, 1s));
  EXPECT_EQ(keeping_.result().why_not, "");
  EXPECT_EQ(line_of(0), "");
}

TEST_F(KeepingTest, GoesOnWithoutRanksThatDoNotAnswerOrAreGone) {
  say(1, "holds", "0 7 8 8");
  peers_[0]->socket.close();
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  EXPECT_FALSE(keeping_.done(peers_, 3s));
  EXPECT_EQ(line_of(1), "write 8 1");
  EXPECT_EQ(line_of(2), "");
}

TEST_F(KeepingTest, GivesUpAndRemovesWhatWasWritten) {
  for (int rank = 0; rank < 3; ++rank) say(rank, "holds", "0 7 8 8");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  const std::string first = written("first"), late = written("late");
  say(0, "written", first);
  EXPECT_FALSE(keeping_.done(peers_, 8s));
  EXPECT_TRUE(keeping_.done(peers_, 17s));
  EXPECT_THAT(keeping_.result().why_not, HasSubstr("rank 1 on h has not written what it has within 15 s"));
  EXPECT_FALSE(std::filesystem::exists(first));
  say(1, "written", late);
  EXPECT_FALSE(std::filesystem::exists(late));
  EXPECT_TRUE(keeping_.result().files.empty());
}

TEST_F(KeepingTest, SaysWhatARankCouldNotWrite) {
  for (int rank = 0; rank < 3; ++rank) say(rank, "holds", "0 7 8 8");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  say(2, "unwritten", "cannot write f: No space left on device");
  EXPECT_TRUE(keeping_.done(peers_, 1s));
  EXPECT_EQ(keeping_.result().why_not, "cannot write f: No space left on device");
}

TEST_F(KeepingTest, UsesNoFileThatCannotBeSeenHere) {
  for (int rank = 0; rank < 3; ++rank) say(rank, "holds", "0 7 8 8");
  EXPECT_FALSE(keeping_.done(peers_, 1s));
  for (int rank = 0; rank < 3; ++rank) say(rank, "written", rank == 0 ? folder_.file("nowhere") : "");
  EXPECT_TRUE(keeping_.done(peers_, 1s));
  EXPECT_TRUE(keeping_.result().files.empty());
  EXPECT_THAT(keeping_.result().why_not, HasSubstr("nowhere cannot be seen from here"));
}

}  // namespace
}  // namespace cortado
