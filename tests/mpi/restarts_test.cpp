// Jobs that lose ranks and are started again: they end as if nothing had happened.
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>
#include <string>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Restarts : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy_file(CORTADO_SOURCE_DIR "/tests/mpi/train_val.prototxt",
                               folder_.file("net.prototxt"));
    write_solver("");
    ASSERT_EQ(run_cortado(folder_.path(), "data generate shapes_lmdb --samples 120").exit_code, 0);
  }

  void write_solver(const std::string& more) {
    folder_.write("solver.prototxt", R"(net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9
max_iter: 120 snapshot: 10 snapshot_prefix: "s" random_seed: 7 display: 0
)" + more);
  }

  CommandResult train(const std::string& options) {
    return run_cortado(folder_.path(), command_ + options, "timeout -k 5 300");
  }

  // Trains in the background. `then` may use: "wait_for FILE"; "pid RANK",
  // the process of a rank, which takes long; "find_ranks COUNT", which sets p0, p1 and so on to them.
  CommandResult train_while(const std::string& options, const std::string& then,
                            const std::string& strategy = "data", const std::string& output = "") {
    folder_.write("run.sh",
                  R"sh(wait_for() { for i in $(seq 1200); do [ -e $1 ] && return; sleep 0.05; done; }
pid() {
  for process in /proc/[0-9]*; do
    read -r name <$process/comm && [ "$name" = cortado ] && [ "$(readlink $process/cwd)" = "$PWD" ] || continue
    tr '\0' '\n' <$process/environ | grep -qE "^(PMI_RANK|OMPI_COMM_WORLD_RANK)=$1\$" && echo ${process#/proc/}
  done
  } 2>/dev/null
find_ranks() {
  until [ "$(echo $p0 $p1 $p2 | wc -w)" = $1 ]; do
    for process in /proc/[0-9]*; do
      read -r name <$process/comm && [ "$name" = cortado ] && [ "$(readlink $process/cwd)" = "$PWD" ] || continue
      rank=$(tr '\0' '\n' <$process/environ | sed -nE "s/^(PMI_RANK|OMPI_COMM_WORLD_RANK)=//p")
      [ "$rank" ] && declare -g p$rank=${process#/proc/}
    done
  done
} 2>/dev/null
)sh" CORTADO_COMMAND " " +
                      command(strategy) + options + " " + output + " &\njob=$!\n" + then +
                      "\nfor i in $(seq 1200); do kill -0 $job 2>/dev/null || break; sleep 0.05; done\n"
                      "kill -KILL $job 2>/dev/null\nwait $job\necho \"exit $?\"\n");
    return run_cortado(folder_.path(), "", "timeout -k 5 300 bash run.sh; true ||");
  }

  // The loss of each iteration, as the log says last.
  std::map<int64_t, double> losses(const std::string& log) {
    std::map<int64_t, double> losses;
    std::istringstream lines(folder_.read(log));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.contains("lr")) losses[json["iteration"]] = json["loss"];
    }
    return losses;
  }

  // The last snapshot and the losses of a training without a fault. All tests but one have its net.
  struct CalmRun {
    std::string bytes;
    std::map<int64_t, double> losses;
  };
  const CalmRun& calm() {
    static const CalmRun run = [this] {
      const CommandResult result = train("--ranks 3 --log calm.jsonl");
      EXPECT_EQ(result.exit_code, 0) << result.output;
      for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("s_iter") && name != last_) std::filesystem::remove(entry.path());
      }
      CalmRun calm{folder_.read(last_), losses("calm.jsonl")};
      std::filesystem::remove(folder_.file(last_));
      return calm;
    }();
    EXPECT_FALSE(run.bytes.empty());
    return run;
  }
  void expect_calm_end(const std::string& folder = "") {
    EXPECT_TRUE(folder_.read(folder + last_) == calm().bytes) << "other bits";
  }

  const std::string last_ = "s_iter_120.safetensors";
  // Options that start each rank as on a host of its own. (MPICH's launcher kills all ranks of a host once a
  // signal has ended one; OpenMPI's kills all.)
  static std::string apart() { return " --launch '" CORTADO_RANK_LAUNCHER " -launcher fork -hosts a,b,c' "; }
  static bool is_mpich() {
    return std::string(CORTADO_RANK_LAUNCHER).find("CORTADO_JOB") == std::string::npos;
  }
  static std::string command(const std::string& strategy) {
    return "train --solver solver.prototxt --threads 1 --strategy " + strategy +
           " --snapshot-format cortado ";
  }
  const std::string command_ = command("data");
  TemporaryFolder folder_;
};

TEST_F(Restarts, AfterRandomKillsGiveTheBitsOfACalmRun) {
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  std::string kills;
  for (const int snapshot : {20, 60, 100})
    kills += fmt::format("wait_for s_iter_{}.safetensors; sleep 0.0{}; kill -KILL $(pid {})\n", snapshot,
                         random() % 10, random() % 3);
  SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, kills));
  calm();
  const CommandResult result = train_while("--ranks 3 --restarts 5 --log killed.jsonl", kills);
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_GT(count_of(result.output, "starting again on 3 ranks from "), 0) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("error")));
  expect_calm_end();
  EXPECT_EQ(calm().losses, losses("killed.jsonl"));
}

// The labels are powers of two: the sum of a batch's, its loss, says which samples were in it. Images are
// large, so that the training does not end before its ranks are killed.
TEST_F(Restarts, TakeEachSampleOnceAnEpoch) {
  constexpr int samples = 20, batch = 4;
  std::string list;
  for (int i = 0; i < samples; ++i)
    list += fmt::format(CORTADO_SOURCE_DIR "/tests/data/images/rgb.png {}\n", 1 << i);
  folder_.write("list.txt", list);
  folder_.write("net.prototxt", fmt::format(R"(name: "cursor"
layer {{ name: "data" type: "ImageData" top: "data" top: "label"
  image_data_param {{ source: "list.txt" batch_size: {} shuffle: true new_height: 100 new_width: 100 }} }}
layer {{ name: "fc" type: "InnerProduct" bottom: "data" top: "fc" inner_product_param {{ num_output: 3 }} }}
layer {{ name: "none" type: "Reduction" bottom: "fc" top: "none" loss_weight: 1e-30 }}
layer {{ name: "ids" type: "Reduction" bottom: "label" top: "ids" loss_weight: 1 }}
)",
                                            batch));
  const CommandResult result = train_while("--ranks 3 --restarts 5 --log ids.jsonl",
                                           "wait_for s_iter_20.safetensors; kill -KILL $(pid 1)\n"
                                           "wait_for s_iter_60.safetensors; kill -KILL $(pid 0)\n");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_THAT(result.output, HasSubstr("(restart 1 of 5)"));
  const std::map<int64_t, double> ids = losses("ids.jsonl");
  ASSERT_EQ(ids.size(), 120u);
  int64_t seen = 0;
  for (const auto& [iteration, sum] : ids) {
    seen += static_cast<int64_t>(sum);
    if ((iteration + 1) % (samples / batch) != 0) continue;
    // Of 20 powers of two only 20 different ones have this sum.
    EXPECT_EQ(seen, (1 << samples) - 1) << "the epoch that ends with iteration " << iteration;
    seen = 0;
  }
}

// A signal that asks for a snapshot asks nobody to end.
TEST_F(Restarts, FollowASnapshotThatASignalAskedFor) {
  calm();
  const CommandResult result =
      train_while("--set snapshot=1000 --ranks 3 --restarts 1 --sigint-effect snapshot --log log.jsonl",
                  "find_ranks 3; wait_for log.jsonl\nfor i in $(seq 600); do compgen -G "
                  "'s_iter_*.safetensors' >/dev/null "
                  "&& break; kill -INT $job || break; sleep 0.1; done\nkill -KILL $p0 $p1 $p2\n");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_THAT(result.output, ContainsRegex("starting again on 3 ranks from s_iter_[0-9]+"));
  expect_calm_end();
}

TEST_F(Restarts, GoOnFromTheNewestSoundSnapshot) {
  calm();
  // Whichever of the newest two the job was told of.
  const CommandResult result = train_while("--ranks 3 --restarts 1",
                                           "find_ranks 3; wait_for s_iter_40.safetensors; kill -STOP $p0\n"
                                           "for file in $(ls -t s_iter_*.safetensors | head -2); do printf "
                                           "damaged | dd of=$file conv=notrunc seek=2000 "
                                           "bs=1 2>/dev/null; done\nkill -KILL $p0 $p1 $p2\n");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_THAT(result.output, ContainsRegex("cortado: warning: s_iter_[0-9]+.safetensors[^\n]*; going on from "
                                           "s_iter_[0-9]+.safetensors, the newest sound one before it\n"));
  expect_calm_end();
}

TEST_F(Restarts, BeginAgainWhereNoSnapshotIsSound) {
  calm();
  const CommandResult result = train_while("--set snapshot=60 --ranks 3 --restarts 2",
                                           "find_ranks 3; wait_for s_iter_60.safetensors; kill -STOP $p0\n"
                                           "for file in s_iter_*.safetensors; do : >$file; done\n"
                                           "kill -KILL $p0 $p1 $p2\n");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_THAT(result.output, ContainsRegex("(; beginning again|from the beginning .restart 1)"));
  expect_calm_end();
}

// What the other ranks had is taken, so at most the iteration that was running is lost.
TEST_F(Restarts, GoOnFromWhatTheRanksThatAreLeftHave) {
  if (!is_mpich()) GTEST_SKIP() << "this launcher leaves no rank";
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  for (const int ranks : {2, 3}) {
    const std::string log = fmt::format("log{}.jsonl", ranks);
    bool kept = false;
    // On a busy machine the ranks may not be in time, on an idle one the training may end before the shell
    // kills one.
    for (int attempt = 0; attempt < 3 && !kept; ++attempt) {
      const int iterations = (ranks == 2 ? 1000 : 160) << 2 * attempt;  // three ranks on two cores are slow
      const std::string last = fmt::format("s_iter_{}.safetensors", iterations);
      const std::string options =
          fmt::format("--set max_iter={} --set snapshot=0 --reproducible ", iterations);
      EXPECT_EQ(train(options + "--ranks 1").exit_code, 0);
      const std::string calm = folder_.read(last);
      std::filesystem::remove(folder_.file(last));
      std::filesystem::remove(folder_.file(log));
      const std::string kill = fmt::format(
          "find_ranks {}; for i in $(seq 3000); do [ $(wc -l <{}) -ge {} ] && break; sleep 0.01; done; "
          "kill -KILL $p{}\n",
          ranks, log, 1 + random() % 80, random() % static_cast<unsigned>(ranks));
      SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, kill));
      const CommandResult result =
          train_while(options + fmt::format("--ranks {} --restarts 1 --log {}", ranks, log) + apart(),
                      "wait_for " + log + "; " + kill);
      EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
      EXPECT_TRUE(folder_.read(last) == calm) << "other bits";
      std::smatch found;
      kept = std::regex_search(
          result.output, found,
          std::regex("last iteration ([0-9]+)[^\n]*; starting again on [23] ranks from iteration ([0-9]+), "
                     "which the ranks that are left have kept .restart 1 of 1.\n"));
      if (!kept) {
        EXPECT_THAT(result.output, AnyOf(Not(HasSubstr("starting again")), HasSubstr("ranks from " + last),
                                         HasSubstr("; the ranks that are left keep no later iteration: ")));
        continue;
      }
      EXPECT_GE(std::stoi(found[2]), std::stoi(found[1]));
      EXPECT_LE(count_of(folder_.read(log), "\"lr\""), iterations + 1) << "lost more than one iteration";
      EXPECT_EQ(std::ssize(losses(log)), iterations);
      for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        EXPECT_THAT(entry.path().filename().string(), Not(ContainsRegex("kept|\\.tmp")));
    }
    EXPECT_TRUE(kept) << "three times the ranks that were left kept nothing";
  }
}

TEST_F(Restarts, GoOnFromTheSnapshotWhereNobodyElseHasALostRanksPart) {
  if (!is_mpich()) GTEST_SKIP() << "this launcher leaves no rank";
  const CommandResult result =
      train_while("--set max_iter=4000 --set snapshot=1000 --ranks 2 --restarts 1" + apart(),
                  "find_ranks 2; wait_for s_iter_1000.safetensors; kill -KILL $p1\n", "model");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  // From the beginning where the rank was killed before it had told of the snapshot.
  EXPECT_THAT(
      result.output,
      ContainsRegex(
          "starting again on 2 ranks from (s_iter_[0-9]+.safetensors|the beginning) .restart 1 of 1.; the "
          "ranks that are left keep no later iteration: each has parts of parameter "
          "'[^ ]+' that no other has\n"));
}

// The disk is full for the ranks that are left, and for them alone.
TEST_F(Restarts, GoOnFromTheSnapshotWhereTheOthersCannotWrite) {
  if (!is_mpich()) GTEST_SKIP() << "this launcher leaves no rank";
  std::string output;
  for (int attempt = 0; attempt < 3 && output.find("File too large") == std::string::npos; ++attempt) {
    for (const int iteration : {2000, 4000})
      std::filesystem::remove(folder_.file(fmt::format("s_iter_{}.safetensors", iteration)));
    std::filesystem::remove(folder_.file("log.jsonl"));
    output = train_while(
                 "--set max_iter=4000 --set snapshot=2000 --ranks 2 --restarts 1 --log log.jsonl" + apart(),
                 // Past the iteration of the snapshot: that one the others need not write.
                 "find_ranks 2; wait_for s_iter_2000.safetensors\n"
                 "until grep -qE '\"iteration\": ?2[0-9][1-9][0-9]' log.jsonl; do sleep 0.01; done\n"
                 "prlimit --pid $p1 --fsize=1000; kill -KILL $p0\n")
                 .output;
    EXPECT_THAT(output, HasSubstr("exit 0\n"));
  }
  EXPECT_THAT(output,
              ContainsRegex("starting again on 2 ranks from s_iter_[0-9]+.safetensors .restart 1 of 1.; the "
                            "ranks that are left keep no later iteration: cannot write "
                            "s_iter_[0-9]+.kept_1.safetensors: File too large\n"));
}

// The number of ranks of this host stands for hosts that come and go. The rank is stopped until the file has
// been looked at.
TEST_F(Restarts, GoOnOnTheHostsThatTheFileNamesFromTheNextSnapshotOn) {
  folder_.write("hosts", "localhost:1\n");
  const std::string list = is_mpich() ? " -hosts" : " --host";
  const CommandResult result =
      train_while("--set max_iter=600 --set snapshot=50 --hosts-file hosts --launch '" CORTADO_RANK_LAUNCHER +
                      list + " q' --log log.jsonl",
                  "find_ranks 1; kill -STOP $p0; echo localhost:3 >hosts; sleep 2; kill -CONT $p0\n", "data",
                  ">out 2>&1");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  const std::string output = folder_.read("out");
  EXPECT_THAT(output, ContainsRegex("cortado: the hosts are localhost:3 by now; going on on 3 ranks from "
                                    "s_iter_[0-9]+.safetensors\n"));
  EXPECT_EQ(count_of(output, "starting again"), 0) << output;
  EXPECT_EQ(count_of(folder_.read("log.jsonl"), "\"lr\""), 600) << "iterations lost or run twice";
  EXPECT_EQ(losses("log.jsonl").size(), 600u);
}

TEST_F(Restarts, RefuseAHostsFileThatHasNoPlaceInTheCommand) {
  folder_.write("hosts", "localhost:2\n");
  const auto expect_error = [&](const std::string& options, const std::string& part) {
    const CommandResult result = train(options);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr(part));
  };
  expect_error("--hosts-file hosts --launch sh", "--hosts-file hosts: the launcher's command has no list");
  expect_error("--hosts-file hosts --ranks 2", "--ranks and --hosts-file: give one");
  expect_error("--hosts-file none --launch 'sh -hosts a'", "cannot read none");
}

// Stopped, not killed; and a folder of the training, in which its own snapshots lie.
TEST_F(Restarts, FollowAStallAndKeepTheFolder) {
  calm();
  const CommandResult result = train_while("--ranks 3 --restarts 1 --stall-timeout 8 --output run",
                                           "wait_for run/s_iter_40.safetensors; kill -STOP $(pid 2)\n");
  EXPECT_THAT(result.output, HasSubstr("exit 0\n"));
  EXPECT_THAT(result.output,
              ContainsRegex("cortado: rank 2 on [^ ]+ .pid [0-9]+. has not answered for 8 s .*"
                            "; starting again on 3 ranks from (iteration [0-9]+, which |.*s_iter_[0-9]+)"));
  expect_calm_end("run/");
}

TEST_F(Restarts, AreRefusedWhereNobodyCanStartAgain) {
  const auto expect_error = [&](const CommandResult& result, const std::string& part) {
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_EQ(count_of(result.output, "cortado: error: "), 1) << result.output;
    EXPECT_THAT(result.output, HasSubstr(part));
  };
  expect_error(train("--ranks 3 --restarts 1 --min-ranks 4"), "--min-ranks 4: the job has 3 ranks");
  expect_error(run_cortado(folder_.path(), command_ + "--restarts 2", CORTADO_PLAIN_LAUNCHER " -n 2 "),
               "--restarts 2: nobody is there who could start this job again");
}

}  // namespace
}  // namespace cortado
