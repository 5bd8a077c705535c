// A rank on another host, whose network goes away: hosts are network namespaces, made where this process may.
#include <cstdlib>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

// Two hosts, HERE's own and NAME's, with a switch NAME-s between them.
class CutLink : public testing::Test {
 protected:
  void SetUp() override {
    const int net = getpid() % 200;
    set_up_ = fmt::format(
        "set -e; n=cn{0}; ip netns add $n; ip netns add $n-s; ip -n $n-s link add name br0 type bridge; "
        "ip link add $n type veth peer name here netns $n-s; ip -n $n link add eth type veth peer name there "
        "netns "
        "$n-s; for p in here there; do ip -n $n-s link set $p master br0 up; done; ip -n $n-s link set br0 "
        "up; "
        "ip addr add 10.213.{1}.1/24 dev $n; ip link set $n up; ip -n $n addr add 10.213.{1}.2/24 dev eth; "
        "ip -n $n link set eth up; ip -n $n link set lo up",
        getpid(), net);
    if (std::system(("{ " + set_up_ + "; } >/dev/null 2>&1").c_str()) != 0)
      GTEST_SKIP() << "needs root and iproute2 for network namespaces";
    const std::string name = fmt::format("cn{}", getpid());
    // Rank 0 here, rank 1 there.
    folder_.write("launch.sh",
                  fmt::format("shift 2; PMI_SIZE=2; export PMI_SIZE; PMI_RANK=0 \"$@\" &\n"
                              "PMI_RANK=1 exec ip netns exec {} unshare --uts sh -c 'hostname there; exec "
                              "\"$@\"' sh \"$@\"\n",
                              name));
    folder_.write("hosts.sh", fmt::format("hosts=$2 size=$4; shift 4; export PMI_SIZE=$size\n"
                                          "case $hosts in *there*) PMI_RANK=0 \"$@\" &\n"
                                          "PMI_RANK=1 exec ip netns exec {} unshare --uts sh -c 'hostname "
                                          "there; exec \"$@\"' sh \"$@\";; esac\n"
                                          "PMI_RANK=0 exec \"$@\"\n",
                                          name));
    cut_ = fmt::format("ip -n {}-s link set there down", name);
    mend_ = fmt::format("ip -n {}-s link set there up", name);
  }
  void TearDown() override {
    const std::string name = fmt::format("cn{}", getpid());
    const std::string end =
        fmt::format("{{ ip netns del {0}; ip netns del {0}-s; ip link del {0}; }} >/dev/null 2>&1", name);
    (void)!std::system(end.c_str());
  }

  // The job program with ranks that need no MPI; `then` happens meanwhile.
  std::string run(int peer_seconds, const std::string& then, const std::string& launcher = "sh launch.sh",
                  int restarts = 0) {
    folder_.write(
        "job.sh",
        fmt::format("{} idle 2 0 10000 '{}' 60 {} {} &\njob=$!\n"
                    // Both ranks have begun, and have said hello.
                    "for i in $(seq 300); do [ $(grep -c ^pid out.txt) -ge 2 ] && break; sleep 0.1; "
                    "done\nsleep 2\n{}\nwait $job\n"
                    "echo exit $?\n",
                    CORTADO_JOB_PROGRAM, launcher, peer_seconds, restarts, then));
    return run_command("timeout -k 5 60 sh job.sh");
  }
  std::string run_command(const std::string& command) {
    const std::string line = fmt::format("cd '{}' && {} >out.txt 2>&1", folder_.path(), command);
    (void)!std::system(line.c_str());
    return folder_.read("out.txt");
  }

  TemporaryFolder folder_;
  std::string set_up_, cut_, mend_;
};

using testing::HasSubstr;

TEST_F(CutLink, ThatIsBackWithinTheLimitEndsNothing) {
  EXPECT_THAT(run(20, cut_ + "; sleep 6.5; " + mend_), HasSubstr("exit 0\n"));
}

TEST_F(CutLink, ThatIsBackWithinTheLimitAtTheStartLosesNoHost) {
  folder_.write("late.sh",
                fmt::format("{}\n(sleep 8; {}) &\n{} idle 2 0 2000 'sh hosts.sh -hosts here,there' "
                            "60 30 1\necho exit $?\n",
                            cut_, mend_, CORTADO_JOB_PROGRAM));
  const std::string output = run_command("timeout -k 5 60 sh late.sh");
  EXPECT_THAT(output, testing::Not(HasSubstr("starting again")));
  EXPECT_THAT(output, HasSubstr("exit 0\n"));
}

TEST_F(CutLink, ThatStaysAwayEndsTheJobAndNamesTheHost) {
  const std::string output = run(2, cut_);
  EXPECT_THAT(output,
              HasSubstr("cortado: error: rank 1 on there cannot be reached: the host or the network has not "
                        "answered for 2 s ("));
  EXPECT_THAT(output, HasSubstr("exit 3\n"));
}

TEST_F(CutLink, ThatStaysAwayLetsTheJobGoOnWithoutTheHost) {
  const std::string output = run(2, cut_, "sh hosts.sh -hosts here,there", 1);
  EXPECT_THAT(output, HasSubstr("cortado: rank 1 on there cannot be reached: the host or the network has not "
                                "answered for 2 s ("));
  EXPECT_THAT(output,
              HasSubstr("; starting again on 1 rank without there from the beginning (restart 1 of 1)"));
  EXPECT_THAT(output, HasSubstr("exit 0\n"));
}

TEST_F(CutLink, ThatStaysAwayEndsAJobWhoseLauncherNamesNoHosts) {
  const std::string output = run(2, cut_, "sh launch.sh", 1);
  EXPECT_THAT(output, HasSubstr("it is not started again: the launcher's command has no list of hosts"));
  EXPECT_THAT(output, HasSubstr("exit 3\n"));
}

}  // namespace
}  // namespace cortado
