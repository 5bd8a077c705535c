// What the parent makes of what it hears, without processes.
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "cortado/base/error.h"
#include "cortado/job/failure.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/rank.h"
#include "cortado/job/restarts.h"
#include "cortado/job/stall.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < 4; ++rank) {
      peers_.push_back(std::make_unique<Peer>());
      peers_.back()->rank = rank;
      peers_.back()->pid = 100 + rank;
      peers_.back()->host = rank < 2 ? "a" : "b";
    }
  }
  void hears(int rank, const std::string& words, Moment now) {
    std::istringstream stream(words);
    peers_[static_cast<size_t>(rank)]->hear(stream, now);
  }
  Peers peers_;
};

TEST_F(Watch, ARankThatDoesNotAnswerIsNamedWithThoseThatWaitForIt) {
  for (int rank = 0; rank < 4; ++rank) hears(rank, "1 7 50 works * computing", 1s);
  for (int rank : {0, 3}) hears(rank, "2 7 60 waits 2 the sum of gradients of layer 'c'", 9s);
  hears(1, "2 7 60 waits * a barrier", 9s);
  EXPECT_FALSE(find_stall(peers_, 10s, 10s));
  hears(0, "3 7 60 waits 2 the sum of gradients of layer 'c'", 11s);
  const auto stall = find_stall(peers_, 11s, 10s);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->what, "rank 2 on b (pid 102) has not answered for 10 s");
  EXPECT_EQ(stall->more,
            "rank 1 waits for it in a barrier; ranks 0, 3 wait for it in the sum of gradients of layer 'c'; "
            "rank 2 was last heard of computing");
}

TEST_F(Watch, RanksThatAllWaitStandStillOnlyWhileNothingMoves) {
  const auto all_wait = [&](int counted, Moment now) {
    for (int rank = 0; rank < 4; ++rank)
      hears(rank, fmt::format("1 7 {} waits {} the sum", counted, (rank + 1) % 4), now);
  };
  all_wait(50, 1s);
  all_wait(51, 9s);  // a piece of a message has come
  all_wait(51, 18s);
  EXPECT_FALSE(find_stall(peers_, 18s, 10s));
  all_wait(51, 19s);
  const auto stall = find_stall(peers_, 19s, 10s);
  ASSERT_TRUE(stall);
  EXPECT_EQ(stall->what, "all ranks have waited for each other for 10 s");
  EXPECT_THAT(stall->more, HasSubstr("rank 3 on b (pid 103) waits for rank 0 in the sum"));
}

TEST_F(Watch, ARankThatWorksMayTakeItsTime) {
  for (Moment now = 1s; now < 1000s; now += 1s) {
    for (int rank = 0; rank < 3; ++rank) hears(rank, "1 7 50 waits 3 the sum", now);
    hears(3, "1 7 50 works * computing layer 'c' forward", now);
    ASSERT_FALSE(find_stall(peers_, now, 10s));
  }
}

TEST_F(Watch, ThoseThatHaveFinishedDoNotCount) {
  for (int rank = 0; rank < 4; ++rank) hears(rank, "1 7 50 waits 3 the sum", 1s);
  for (const auto& peer : peers_) peer->finished = true;
  EXPECT_FALSE(find_stall(peers_, 100s, 10s));
}

// Rank 3 worked for long, then brought what the others waited for and ended, all between two of their
// answers.
TEST_F(Watch, WhatRanksToldBeforeAnotherEndedIsOld) {
  hears(3, "1 7 50 works * computing", 14s);
  for (int rank = 0; rank < 3; ++rank) {
    hears(rank, "1 7 50 waits * the sum", 1s);
    hears(rank, "2 7 50 waits * the sum", 14s);
  }
  peers_[3]->finished = true;
  peers_[3]->moved = 15s;
  EXPECT_FALSE(find_stall(peers_, 15s, 10s));
  for (int rank = 0; rank < 3; ++rank) hears(rank, "3 7 50 waits * the sum", 25s);
  EXPECT_TRUE(find_stall(peers_, 25s, 10s));  // they wait for one that has ended
}

TEST_F(Watch, RanksThatHaveNotComeAreNamedWithTheirHosts) {
  peers_.erase(peers_.begin() + 2, peers_.end());
  EXPECT_EQ(missing_ranks({"mpiexec", "-hosts", "a,b.net:2,10.0.0.1"}, peers_, 4),
            "2 of 4 ranks have started (launcher 'mpiexec -hosts a,b.net:2,10.0.0.1'): rank 0 on a, rank 1 "
            "on a; not "
            "ranks 2, 3; nothing has come from b.net, 10.0.0.1");
}

TEST(HostsNamed, AreThoseOfTheOptions) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(hosts_named(split_words("mpiexec -hosts a,b -iface eth0")), (Words{"a", "b"}));
  EXPECT_EQ(hosts_named(split_words("mpirun --host a:2,b:1 -x X")), (Words{"a", "b"}));
  EXPECT_EQ(hosts_named(split_words("srun -w a,b -N 2")), (Words{"a", "b"}));
  EXPECT_EQ(hosts_named(split_words("mpiexec -hosts")), Words{});
}

// However it is cut into pieces.
void expect_split(const std::string& text, const std::string& passed, const std::string& kept,
                  bool blocks = true) {
  for (size_t piece : {size_t{1}, size_t{3}, text.size() + 1}) {
    LauncherWords words(blocks);
    std::string all;
    for (size_t at = 0; at < text.size(); at += piece) all += words.pass(text.substr(at, piece));
    all += words.end();
    EXPECT_EQ(all, passed) << text;
    EXPECT_EQ(words.kept(), kept) << text;
  }
}

TEST(LauncherWords, AreToldFromTheRanks) {
  const std::string box =
      "\n" + std::string(83, '=') +
      "\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 12 RUNNING AT vm\n=   EXIT "
      "CODE: 9\n" +
      std::string(83, '=') + "\n";
  expect_split("loss 1\n" + box + "[proxy:0:0@vm] failed\nloss 2", "loss 1\nloss 2",
               box + "[proxy:0:0@vm] failed\n");
  const std::string block =
      std::string(74, '-') + "\nmpirun noticed that\n\nit ended\n" + std::string(74, '-') + "\n";
  expect_split("a\n" + block + "b\n", "a\nb\n", block);
  expect_split(block, block, "", false);
  const std::string ucx = "[1760000000.123456] [vm:12:0]  tcp_ep.c:12  UCX  ERROR gone\n";
  expect_split("x\n\n\n" + ucx + "[vm:12] *** MPI_Init\n[==>  ] 3/4",
               "x\n\n\n[vm:12] *** MPI_Init\n[==>  ] 3/4", ucx);
  expect_split("[vm:12] PMIX ERROR: gone\n", "", "[vm:12] PMIX ERROR: gone\n");
}

TEST(LauncherWords, HoldNothingBackThatIsARanks) {
  LauncherWords words(true);
  EXPECT_EQ(words.pass("[===>"), "[===>");
  EXPECT_EQ(words.pass("\rIter"), "\rIter");
  LauncherWords others(true);
  EXPECT_EQ(others.pass("I0101"), "I0101");
}

TEST(NextStart, IsOnTheHostsThatAreLeft) {
  const JobStart start{
      .ranks = 4, .launcher = split_words("mpiexec -hosts a:2,b,c"), .restarts = 2, .min_ranks = 2};
  JobEnd end{.code = 3, .snapshot = "s", .may_restart = true, .lost_hosts = {"a"}, .lost_ranks = 2};
  const auto next = next_start(start, end);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->ranks, 2);
  EXPECT_EQ(next->launcher, split_words("mpiexec -hosts b,c"));
  EXPECT_EQ(next->snapshot, "s");
  EXPECT_EQ(next->restarts_done, 1);
  end.lost_ranks = 3;
  EXPECT_FALSE(next_start(start, end)) << "too few are left";
  end.lost_ranks = 2;
  end.lost_hosts = {"a", "b", "c"};
  EXPECT_FALSE(next_start(start, end)) << "no host is left";
  end.lost_hosts = {"d"};
  EXPECT_FALSE(next_start(start, end)) << "no such host is named";
  end.lost_hosts = {};
  end.lost_ranks = 0;
  EXPECT_EQ(next_start(start, end)->ranks, 4);
  end.silent_hosts = {"b"};
  EXPECT_EQ(next_start(start, end)->silent_hosts, end.silent_hosts);
  EXPECT_EQ(next_start(start, end)->launcher, start.launcher);
  end.may_restart = false;
  EXPECT_FALSE(next_start(start, end));
  end.may_restart = true;
  EXPECT_FALSE(next_start(JobStart{.restarts = 2, .restarts_done = 2}, end));
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("abcdef", 5), "ab...");
  EXPECT_EQ(shortened("a\xc3\xa4xyz", 5), "a...");
}

// The next line that starts so; none within 20 s.
std::string line_of(LineSocket& socket, const std::string& start) {
  for (int tries = 0; tries < 200; ++tries) {
    while (const auto line = socket.take_line())
      if (line->starts_with(start)) return *line;
    pollfd wait{socket.fd(), POLLIN, 0};
    if (poll(&wait, 1, 100) == 1 && !socket.receive()) break;
  }
  return "";
}

TEST(Wire, ListensWhereItIsAsked) {
  const Socket listener = listen_at("127.0.0.1");
  EXPECT_TRUE(connect_to("127.0.0.1", port_of(listener), 5));
  EXPECT_FALSE(connect_to("127.0.0.2", port_of(listener), 5));  // of this host, too
  EXPECT_TRUE(connect_to("127.0.0.2", port_of(listen_at("")), 5));
  for (const char* wrong : {"192.0.2.1", "localhost", "somewhere"}) {
    try {
      listen_at(wrong);
      ADD_FAILURE() << wrong;
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr(fmt::format("--listen {}: ", wrong)));
    }
  }
}

TEST(Wire, SecretsAreTheSameOrNot) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("0123", "0123"));
  for (const char* other : {"", "0", "0124", "1123", "01230", "01230123"}) {
    EXPECT_FALSE(same_secret("0123", other)) << other;
    EXPECT_FALSE(same_secret(other, "0123")) << other;
  }
}

TEST_F(Watch, StrangersThatAreSilentOrTooManyAreDropped) {
  const auto come = [&](Moment when) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = LineSocket(Socket(dup(STDERR_FILENO)), 1);
    peers_.back()->came = when;
  };
  for (int i = 0; i < 300; ++i) come(i < 100 ? 1s : 5s);
  drop_strangers(peers_, 6s);
  EXPECT_EQ(std::ssize(peers_), 4 + 256);  // the ranks stay, though none of them has a socket here
  drop_strangers(peers_, 12s);
  EXPECT_EQ(std::ssize(peers_), 4 + 200);
  peers_.back()->socket.close();
  drop_strangers(peers_, 12s);
  EXPECT_EQ(std::ssize(peers_), 4 + 199);
}

// Its network may be away, but here it answers.
TEST(Rank, GivesUpAParentThatListensNoMore) {
  const int port = port_of(listen_at(""));
  setenv(job_variable,
         to_text({.token = "token", .port = port, .peer_seconds = 60, .hosts = {"127.0.0.2", "127.0.0.1"}})
             .c_str(),
         1);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(JobRank::join(0), PeerError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  unsetenv(job_variable);
}

struct NoState : RankState {
  Held hold_still() override { return {}; }
  std::string write(int64_t, const std::vector<int>&) override { return ""; }
};

// It keeps its state for the parent alone.
TEST(Rank, EndsWithItsParentThoughItKeepsAState) {
  const auto begin = std::chrono::steady_clock::now();
  const auto lose_all = [] {
    const Socket listener = listen_at("");
    setenv(job_variable,
           to_text({.token = "token", .port = port_of(listener), .hosts = {"127.0.0.1"}}).c_str(), 1);
    std::thread parent([&] {
      LineSocket rank(Socket(accept(listener.fd(), nullptr, nullptr)), 20);
      line_of(rank, "hello token 0 ");
      rank.send("welcome 2 0 ");
      line_of(rank, "goodbye");
    });
    NoState state;
    const std::unique_ptr<JobRank> rank = JobRank::join(0);
    rank->offer(&state);
    rank->miss_others("rank 1 is gone");
    std::_Exit(0);
  };
  EXPECT_EXIT(lose_all(), testing::ExitedWithCode(3), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
}

// On a busy host both lines are there before the rank reads the first one.
TEST(Rank, AnswersAQuestionThatComesWithTheWelcome) {
  const Socket listener = listen_at("");
  setenv(job_variable, to_text({.token = "token", .port = port_of(listener), .hosts = {"127.0.0.1"}}).c_str(),
         1);
  std::promise<std::string> answered;
  std::thread parent([&] {
    LineSocket rank(Socket(accept(listener.fd(), nullptr, nullptr)), 20);
    line_of(rank, "hello token 0 ");
    const std::string lines = "welcome 1 0 \nthere? 1\n";
    EXPECT_EQ(::send(rank.fd(), lines.data(), lines.size(), 0), static_cast<ssize_t>(lines.size()));
    answered.set_value(line_of(rank, "here 1 "));
    line_of(rank, "goodbye");
  });
  const std::unique_ptr<JobRank> rank = JobRank::join(0);
  ASSERT_TRUE(rank);
  EXPECT_NE(answered.get_future().get(), "");
  rank->goodbye(0);
  parent.join();
  unsetenv(job_variable);
}

}  // namespace
}  // namespace cortado
