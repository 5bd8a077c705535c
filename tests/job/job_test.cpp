#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <random>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "cortado/comm/mpi.h"
#include "cortado/job/launcher_words.h"
#include "cortado/job/wire.h"

namespace cortado {
namespace {

using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Outcome {
  int code = -1;
  std::string output;
  double seconds = 0;
  std::vector<pid_t> ranks;
};

// What a process's status says of `field`.
std::string status_of(pid_t pid, const std::string& field) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":\t")) return line.substr(field.size() + 2);
  return "";
}

bool alive(pid_t pid) { return kill(pid, 0) == 0 && !status_of(pid, "State").starts_with("Z"); }
pid_t parent_of(pid_t pid) { return std::atoi(status_of(pid, "PPid").c_str()); }

// The job program, run by fork and exec with its output in a pipe.
class Job {
 public:
  explicit Job(const std::vector<std::string>& arguments) : begin_(std::chrono::steady_clock::now()) {
    std::vector<std::string> words = {CORTADO_JOB_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }

  pid_t pid() const { return pid_; }
  const std::vector<pid_t>& ranks() const { return outcome_.ranks; }

  // Until all ranks have told their process ids.
  void wait_for_ranks(size_t ranks) {
    find_ranks();
    while (outcome_.ranks.size() < ranks && read_more(20000)) find_ranks();
  }

  void wait_for(const std::string& text) {
    while (outcome_.output.find(text) == std::string::npos && read_more(20000)) continue;
  }

  Outcome finish() {
    while (read_more(20000)) continue;
    find_ranks();
    int status = 0;
    for (int tries = 0; tries < 50 && waitpid(pid_, &status, WNOHANG) == 0; ++tries)
      std::this_thread::sleep_for(100ms);
    if (alive(pid_)) {  // it does not end
      for (pid_t pid : outcome_.ranks) kill(pid, SIGKILL);
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
    }
    outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    close(output_);
    return outcome_;
  }

 private:
  bool read_more(int milliseconds) {
    pollfd wait{output_, POLLIN, 0};
    if (poll(&wait, 1, milliseconds) != 1) return false;
    char buffer[4096];
    ssize_t got = read(output_, buffer, sizeof buffer);
    if (got > 0) outcome_.output.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }

  void find_ranks() {
    outcome_.ranks.clear();
    std::istringstream lines(outcome_.output);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("pid ")) outcome_.ranks.push_back(std::atoi(line.c_str() + 4));
  }

  pid_t pid_ = -1;
  int output_ = -1;
  std::chrono::steady_clock::time_point begin_;
  Outcome outcome_;
};

Outcome run(const std::vector<std::string>& arguments) { return Job(arguments).finish(); }

void expect_nobody_left(const Outcome& outcome) {
  for (int tries = 0; tries < 20; ++tries) {
    if (std::none_of(outcome.ranks.begin(), outcome.ranks.end(), alive)) return;
    std::this_thread::sleep_for(100ms);
  }
  for (pid_t pid : outcome.ranks) EXPECT_FALSE(alive(pid)) << pid << "\n" << outcome.output;
}

// A launcher that does this.
class Script {
 public:
  explicit Script(const std::string& lines)
      : path_(::testing::TempDir() + fmt::format("launcher-{}", getpid())) {
    std::ofstream(path_) << "#!/bin/sh\n" << lines;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~Script() { std::filesystem::remove(path_); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Job, EndsWhenAllRanksHaveEnded) {
  Outcome outcome = run({"end", "3", "0", "0"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.ranks.size(), 3u);
  expect_nobody_left(outcome);
}

TEST(Job, NamesARankThatIsKilledAndStops) {
  unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (int time = 0; time < 10; ++time) {
    int ranks = 2 + time % 2, victim = static_cast<int>(random() % ranks);
    int milliseconds = static_cast<int>(random() % 700);
    SCOPED_TRACE(fmt::format("seed {}: rank {} of {} after {} ms", seed, victim, ranks, milliseconds));
    Outcome outcome =
        run({"die", std::to_string(ranks), std::to_string(victim), std::to_string(milliseconds)});
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    EXPECT_LT(outcome.seconds, 10.0 + milliseconds * 1e-3);
    EXPECT_THAT(outcome.output, HasSubstr(fmt::format("cortado: error: rank {} on ", victim)));
    EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("no snapshot was written yet"));
    expect_nobody_left(outcome);
  }
}

TEST(Job, NamesARankThatAbortsUnlessAnotherIsTheReason) {
  Outcome alone = run({"abort", "2", "1", "500"});
  EXPECT_EQ(alone.code, 3) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("cortado: error: rank 1 on "));
  expect_nobody_left(alone);
  Outcome shoved = run({"shove", "2", "1", "1500"});
  EXPECT_EQ(shoved.code, 3) << shoved.output;
  EXPECT_THAT(shoved.output, HasSubstr("cortado: error: rank 0 on "));
  EXPECT_EQ(count_of(shoved.output, "cortado: error"), 1) << shoved.output;
  expect_nobody_left(shoved);
}

// The port at which the ranks find the command, by the environment of one.
int port_of_job(pid_t rank) {
  std::ifstream file(fmt::format("/proc/{}/environ", rank), std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');)
    if (entry.starts_with("CORTADO_JOB=")) return parse_job_address(entry.substr(12)).value().port;
  return 0;
}

std::ptrdiff_t open_files_of(pid_t pid) {
  return std::distance(std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", pid)), {});
}

// Some say nothing, some say what is no hello, a line without an end or a token that is not this job's.
TEST(Job, LivesThroughAFloodOfStrangers) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for("all ready");
  job.wait_for_ranks(2);
  const int port = port_of_job(job.ranks().front());
  ASSERT_GT(port, 0);
  const std::vector<std::string> words = {"", "GET / HTTP/1.1\r\n\r\n", std::string(100000, 'x'),
                                          "hello 00000000000000000000000000000000 1 1 evil\n", "\n\n\n"};
  std::vector<Socket> strangers;
  for (size_t i = 0; i < 2000; ++i) {
    Socket socket = connect_to("127.0.0.1", port, 10);
    const std::string& said = words[i % words.size()];
    if (socket) ::send(socket.fd(), said.data(), said.size(), MSG_NOSIGNAL);
    if (said.empty()) strangers.push_back(std::move(socket));  // the others leave at once
  }
  for (int tries = 0; tries < 50 && open_files_of(job.pid()) > 300; ++tries)
    std::this_thread::sleep_for(100ms);
  EXPECT_LE(open_files_of(job.pid()), 300);
  for (pid_t rank : job.ranks()) EXPECT_TRUE(alive(rank));
  kill(job.ranks().front(), SIGKILL);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("cortado: error: rank [01] on .* is gone"));
  expect_nobody_left(outcome);
}

TEST(Job, TellsTheIterationAndWhatToResumeFrom) {
  Outcome outcome = run({"snapshot", "2", "0", "1500"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.output, HasSubstr("is gone (last iteration "));
  EXPECT_THAT(outcome.output, HasSubstr("resume with --snapshot /a/b c.safetensors"));
}

TEST(Job, GivesARanksOwnErrorOnce) {
  Outcome outcome = run({"refuse", "3", "1", "0"});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("cortado: error: there is no such file (rank 1 on "));
  EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
  expect_nobody_left(outcome);
}

// Though the launcher is killed once it has started the ranks.
TEST(Job, GivesARanksOwnErrorThoughTheLauncherIsKilled) {
  const Script launcher(fmt::format("{} \"$@\"\nkill -9 $$\n", mpi_launcher()));
  const Outcome outcome = run({"refuse", "3", "1", "0", launcher.path()});
  EXPECT_EQ(outcome.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("cortado: error: there is no such file (rank 1 on "));
  EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
  expect_nobody_left(outcome);
}

TEST(Job, NoticesARankThatEndsBeforeMpiBegins) {
  Outcome outcome = run({"early", "2", "0", "0"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("rank 0 on "));
  expect_nobody_left(outcome);
}

TEST(Job, GivesUpARankThatDoesNotComeThoughAllOthersHave) {
  Outcome outcome = run({"absent", "3", "1", "0"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("a rank did not start, though all others have: 2 of 3 ranks"));
  EXPECT_THAT(outcome.output, HasSubstr("; not rank 1"));
  expect_nobody_left(outcome);
}

// Of a host that answers no rank comes at the first start, or at the first two.
TEST(Job, TriesAHostThatAnswersOnceMoreAndThenGoesOnWithoutIt) {
  char here[256] = "";
  ASSERT_EQ(gethostname(here, sizeof here - 1), 0);
  const std::string starts = testing::TempDir() + fmt::format("starts-{}", getpid());
  for (const int bad : {1, 2}) {
    SCOPED_TRACE(bad);
    const Script launcher(
        fmt::format("echo >>{0}; export PMI_SIZE=$4; shift 4\n"
                    "if [ $PMI_SIZE = 2 ] && [ $(wc -l <{0}) -gt {1} ]; then PMI_RANK=1 \"$@\" & fi\n"
                    "PMI_RANK=0 exec \"$@\"\n",
                    starts, bad));
    const std::string command = fmt::format("{} -hosts {},127.0.0.9", launcher.path(), here);
    const Outcome outcome = run({"idle", "2", "0", "6000", command, "60", "30", "2"});
    std::filesystem::remove(starts);
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("nothing has come from 127.0.0.9; starting again on 2 ranks from"));
    const char* without = "starting again on 1 rank without 127.0.0.9 from the beginning (restart 2 of 2)";
    EXPECT_EQ(count_of(outcome.output, without), bad - 1) << outcome.output;
    EXPECT_EQ(count_of(outcome.output, "starting again"), bad) << outcome.output;
    expect_nobody_left(outcome);
  }
}

TEST(Job, RanksEndWhenTheParentIsKilled) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for_ranks(2);
  std::this_thread::sleep_for(300ms);
  kill(job.pid(), SIGKILL);
  Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, -1);
  EXPECT_EQ(outcome.ranks.size(), 2u);
  EXPECT_LT(outcome.seconds, 10.0);
  expect_nobody_left(outcome);
}

// One that is stopped cannot end by itself, and its launcher waits for it.
TEST(Job, AStoppedRankEndsWhenTheParentIsKilled) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for_ranks(2);
  std::this_thread::sleep_for(300ms);
  kill(job.ranks()[1], SIGSTOP);
  kill(job.pid(), SIGKILL);
  const Outcome outcome = job.finish();
  EXPECT_LT(outcome.seconds, 10.0);
  for (int tries = 0; tries < 50 && alive(outcome.ranks[1]); ++tries) std::this_thread::sleep_for(100ms);
  expect_nobody_left(outcome);
}

// All that could end it is killed at once.
TEST(Job, AStoppedRankEndsWhenLauncherAndParentAreKilled) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for_ranks(2);
  std::this_thread::sleep_for(300ms);
  const pid_t process = parent_of(job.ranks()[1]), launcher = parent_of(process);
  if (launcher == job.pid()) GTEST_SKIP() << "this launcher starts ranks itself";
  kill(job.ranks()[1], SIGSTOP);
  for (const pid_t pid : {process, launcher, job.pid()}) kill(pid, SIGKILL);
  const Outcome outcome = job.finish();
  EXPECT_LT(outcome.seconds, 10.0);
  for (int tries = 0; tries < 50 && alive(outcome.ranks[1]); ++tries) std::this_thread::sleep_for(100ms);
  expect_nobody_left(outcome);
}

TEST(Job, ARankThatStopsAfterItsLauncherIsGoneEndsWithTheParent) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for_ranks(2);
  std::this_thread::sleep_for(300ms);
  const pid_t rank = job.ranks()[1], process = parent_of(rank), launcher = parent_of(process);
  if (launcher == job.pid()) GTEST_SKIP() << "this launcher starts ranks itself";
  for (const pid_t pid : {process, launcher}) kill(pid, SIGKILL);
  for (int tries = 0; tries < 50 && parent_of(rank) == process; ++tries) std::this_thread::sleep_for(2ms);
  kill(rank, SIGSTOP);
  kill(job.pid(), SIGKILL);
  const Outcome outcome = job.finish();
  EXPECT_LT(outcome.seconds, 10.0);
  for (int tries = 0; tries < 50 && alive(rank); ++tries) std::this_thread::sleep_for(100ms);
  expect_nobody_left(outcome);
}

// As MPICH's proxies do that come once their launcher is gone: in a session of its own it waits for good.
TEST(Job, WhatTheLauncherStartedEndsWithTheParentOrTheLauncher) {
  const Script launcher("setsid sleep 1000 &\necho pid $!\nwait\n");
  for (const bool itself : {true, false}) {
    Job job({"forever", "2", "0", "0", launcher.path()});
    job.wait_for_ranks(1);
    ASSERT_EQ(job.ranks().size(), 1u);
    const pid_t started = job.ranks()[0];
    std::this_thread::sleep_for(300ms);
    kill(itself ? parent_of(started) : job.pid(), SIGKILL);
    const Outcome outcome = job.finish();
    EXPECT_LT(outcome.seconds, 10.0);
    for (int tries = 0; tries < 50 && alive(started); ++tries) std::this_thread::sleep_for(100ms);
    expect_nobody_left(outcome);
  }
}

TEST(Job, PassesSignalsOnToTheRanks) {
  Job job({"forever", "2", "0", "0"});
  job.wait_for("all ready");
  kill(job.pid(), SIGTERM);
  Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("stopped by a signal"));
  expect_nobody_left(outcome);
}

TEST(Job, RefusesALauncherThatCannotBeRunOrStartsNothing) {
  Outcome missing = run({"end", "2", "0", "0", "/no/such/mpiexec --fast"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.output, HasSubstr("/no/such/mpiexec"));
  Outcome nothing = run({"end", "2", "0", "0", "/bin/true"});
  EXPECT_EQ(nothing.code, 3);
  EXPECT_THAT(nothing.output, HasSubstr("0 of 2 ranks have started (launcher '/bin/true'"));
}

// The launcher's own words about an end that the parent tells.
void expect_no_noise(const Outcome& outcome) {
  for (const char* word : {"BAD TERMINATION", "YOUR APPLICATION", "[mpiexec@", "[proxy:", "-----", "mpirun"})
    EXPECT_THAT(outcome.output, Not(HasSubstr(word)));
}

TEST(Job, PassesOnWhatRanksSayButNotTheLaunchersWordsAboutTheEnd) {
  const Outcome outcome = run({"die", "2", "1", "300"});
  EXPECT_THAT(outcome.output, HasSubstr("rank 1 is to die\n"));
  expect_no_noise(outcome);
}

TEST(Job, CutsAMessageThatIsTooLong) {
  const Outcome outcome = run({"wordy", "2", "1", "0"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.output, HasSubstr("cortado: error: wwwwwwwwww"));
  EXPECT_THAT(outcome.output, HasSubstr("www... (rank 1 on "));
  EXPECT_LT(outcome.output.size(), 10000u);
  expect_nobody_left(outcome);
}

// Stopped for good: the others wait for it, in one sum or in two.
TEST(Job, EndsWhenARankStandsStill) {
  for (const char* victim : {"0", "2"}) {
    const Outcome outcome = run({"stop", "3", victim, "500", "", "2"});
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    EXPECT_THAT(outcome.output,
                ContainsRegex(fmt::format(
                    "cortado: error: rank {} on .* \\(pid [0-9]+\\) has not answered for 2 s "
                    "\\(last iteration [0-9]+\\); rank(s [0-2], [0-2] wait| [0-2] waits) for it in "
                    "[a-z ]+(; rank [0-2] waits for it in [a-z ]+)?; rank {} was last heard of (waiting in )?"
                    "[a-z ]+; the job was stopped",
                    victim, victim)));
    EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
    expect_no_noise(outcome);
    expect_nobody_left(outcome);
  }
}

TEST(Job, EndsWhenRanksWaitForEachOther) {
  const Outcome outcome = run({"circle", "2", "0", "0", "", "2"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_THAT(
      outcome.output,
      ContainsRegex("all ranks have waited for each other for 2 s .before its first iteration.; rank 0 on .* "
                    "waits for rank 1 in receiving values; rank 1 on .* waits for rank 0 in "));
  expect_nobody_left(outcome);
}

TEST(Job, LeavesARankTheTimeThatItsWorkTakes) {
  const Outcome outcome = run({"compute", "2", "1", "7000", "", "3"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(Job, GoesOnAfterARankOrTheParentStoodStillForAWhile) {
  Job job({"forever", "2", "0", "0", "", "3"});
  job.wait_for("all ready");
  job.wait_for_ranks(2);
  kill(job.ranks()[1], SIGSTOP);
  std::this_thread::sleep_for(1s);
  kill(job.ranks()[1], SIGCONT);
  std::this_thread::sleep_for(300ms);
  for (pid_t pid : {job.pid(), job.ranks()[0]}) kill(pid, SIGSTOP);  // as a machine that sleeps
  std::this_thread::sleep_for(4s);
  kill(job.pid(), SIGCONT);
  std::this_thread::sleep_for(500ms);
  kill(job.ranks()[0], SIGCONT);
  std::this_thread::sleep_for(500ms);
  kill(job.pid(), SIGTERM);
  const Outcome outcome = job.finish();
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("stopped by a signal"));
}

// The launcher itself, and its process that started the ranks and takes their output.
TEST(Job, EndsWhenTheLauncherIsGone) {
  for (const bool itself : {true, false}) {
    Job job({"forever", "2", "0", "0"});
    job.wait_for("all ready");
    job.wait_for_ranks(2);
    const pid_t process = parent_of(job.ranks()[0]), launcher = parent_of(process);
    if (launcher == job.pid()) GTEST_SKIP() << "this launcher starts ranks itself";
    std::this_thread::sleep_for(800ms);
    kill(itself ? launcher : process, SIGKILL);
    const Outcome outcome = job.finish();
    EXPECT_EQ(outcome.code, 3) << outcome.output;
    EXPECT_THAT(outcome.output,
                ContainsRegex(itself ? "the launcher '.*' was killed by signal 9 though ranks were running "
                                     : "the launcher's process that started rank [01] on .* is gone "));
    EXPECT_THAT(outcome.output, HasSubstr("(last iteration "));
    EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
    expect_nobody_left(outcome);
  }
}

// The ranks of "snapshot" report one, and rank 0 kills itself each time.
TEST(Job, IsStartedAgainFromItsSnapshotAsOftenAsAllowed) {
  const Outcome outcome = run({"snapshot", "2", "0", "300", "", "60", "60", "2"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  const std::string line =
      "cortado: rank 0 on .* is gone .*; starting again on 2 ranks "
      "from /a/b c.safetensors .restart ";
  EXPECT_THAT(outcome.output, ContainsRegex(line + "1 of 2."));
  EXPECT_THAT(outcome.output, ContainsRegex(line + "2 of 2."));
  EXPECT_EQ(count_of(outcome.output, "goes on from '/a/b c.safetensors'"), 4) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "cortado: error"), 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("resume with --snapshot /a/b c.safetensors; it was started again 2 "
                                        "times, as often as --restarts allows\n"));
  EXPECT_EQ(outcome.ranks.size(), 6u);
  expect_nobody_left(outcome);
}

// Rank 0 ends at once after the snapshot: it cannot have told of an iteration.
TEST(Job, GoesOnFromASnapshotThatWasWrittenBeforeAnIterationWasTold) {
  const Outcome outcome = run({"snapshot", "2", "0", "0", "", "60", "60", "1"});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_EQ(count_of(outcome.output, "goes on from '/a/b c.safetensors'"), 2) << outcome.output;
  expect_nobody_left(outcome);
}

TEST(Job, IsNotStartedAgainForWhatWouldComeAgain) {
  const Outcome refused = run({"refuse", "2", "1", "0", "", "60", "60", "3"});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_THAT(refused.output, Not(HasSubstr("starting again")));
  const Outcome nothing = run({"end", "2", "0", "0", "/bin/true", "60", "60", "3"});
  EXPECT_EQ(nothing.code, 3);
  EXPECT_THAT(nothing.output, Not(HasSubstr("starting again")));
}

TEST(SplitWords, KeepsQuotedWordsTogether) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_words("mpiexec  -hosts a,b"), (Words{"mpiexec", "-hosts", "a,b"}));
  EXPECT_EQ(split_words("a 'b c' \"d 'e\" ''"), (Words{"a", "b c", "d 'e", ""}));
  EXPECT_EQ(split_words(""), Words{});
}

}  // namespace
}  // namespace cortado
