#include "cortado/train/training_folder.h"

#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cortado/base/file.h"
#include "cortado/base/text.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/train/training_log.h"

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

IterationReport iteration(int64_t number, double loss) {
  return {.iteration = number,
          .loss = loss,
          .learning_rate = 0.5 / static_cast<double>(number + 1),
          .images = 10 + number,
          .duration = {0.25}};
}

TestReport tested(int64_t iteration, int net, double accuracy) {
  return {.iteration = iteration,
          .net = net,
          .outputs = {{"accuracy", accuracy, 0}, {"loss, weighed", 2 * accuracy, 1}}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TrainingSummary, HasARowForEachTest) {
  TrainingSummary summary;
  EXPECT_EQ(summary.csv(), "iteration,loss,lr,images_per_second\n");
  summary.test(tested(0, 0, 0.125));
  for (int64_t i = 0; i < 4; ++i) summary.iteration(iteration(i, static_cast<double>(i)));
  summary.test(tested(4, 0, 0.5));
  summary.test(tested(4, 1, 0.75));
  summary.iteration(iteration(4, 0.25));
  IterationReport look = iteration(5, 100);
  look.updated = false;
  summary.iteration(look);
  EXPECT_EQ(summary.csv(),
            "iteration,loss,lr,images_per_second,test accuracy,\"test loss, weighed\",test1 accuracy,"
            "\"test1 loss, weighed\"\n"
            "0,,,,0.125,0.25,,\n"
            "4,1.5,0.125,46,0.5,1,0.75,1.5\n"
            "5,0.25,0.1,56,,,,\n");
}

// Writes down what it is told.
class Notes : public TrainingObserver {
 public:
  void iteration(const IterationReport& r) override {
    text +=
        fmt::format("i{} {} {} {} {}\n", r.iteration, r.loss, r.learning_rate, r.images, r.duration.count);
  }
  void test(const TestReport& r) override {
    text += fmt::format("t{} {} {}", r.iteration, r.net, r.loss.value_or(-1));
    for (const OutputValue& o : r.outputs) text += fmt::format(" {}={}*{}", o.name, o.value, o.loss_weight);
    text += "\n";
  }
  std::string text;
};

TEST(ReplayLog, TellsWhatTheLogTells) {
  ScratchFolder folder;
  const std::string path = folder.file("log");
  Notes wanted;
  {
    TrainingLog log(path, false);
    for (int64_t i = 0; i < 7; ++i) {
      TestReport test = tested(i, 0, 0.25);
      test.loss = 0.5;
      log.test(test);
      log.iteration(iteration(i, 0.1));
      if (i < 4) wanted.test(test), wanted.iteration(iteration(i, 0.1));
      if (i == 3) log.snapshot(4, "x_iter_4");
    }
  }
  std::ofstream(path, std::ios::app) << "{\"iteration\": 7, \"lo";  // killed
  {
    TrainingLog log(path, true);  // went on from iteration 4
    for (int64_t i = 4; i < 8; ++i) {
      log.iteration(iteration(i, 0.01));
      log.test(tested(i, 1, 0.5));
    }
  }
  Notes found;
  replay_log(path, 4, found);
  EXPECT_EQ(found.text, wanted.text);
  Notes all;
  replay_log(path, 6, all);
  const std::vector<std::string> lines = lines_of(all.text);
  ASSERT_EQ(lines.size(), 4 * 2 + 2 * 3u) << all.text;
  EXPECT_EQ(lines[13], "i5 0.01 0.08333333333333333 15 0.25");
  EXPECT_EQ(lines[12], "t5 1 -1 accuracy=0.5*0 loss, weighed=1*1");

  std::ofstream(path, std::ios::app) << "{\"iteration\": 1, \"lr\": true}\n";
  EXPECT_EQ(error_of([&] { replay_log(path, 4, found); }).find(path + ":25: is no line of a training's log"),
            0u)
      << error_of([&] { replay_log(path, 4, found); });
}

class TrainingFolderTest : public ::testing::Test {
 protected:
  std::string refusal(const std::string& name, const std::string& snapshot = "") {
    return error_of([&] { TrainingFolder(folder_.file(name), snapshot); });
  }
  void train(const std::string& name, const std::string& snapshot, int64_t first, int64_t end,
             std::vector<std::string> inputs = {}) {
    TrainingFolder training(folder_.file(name), snapshot);
    caffe::SolverParameter solver;
    solver.set_base_lr(static_cast<float>(end));
    training.begin({.command = "cortado train",
                    .snapshot = snapshot,
                    .first_iteration = first,
                    .ranks = 3,
                    .net = "a net",
                    .inputs = std::move(inputs)},
                   solver, Strategy{.net = "a net"});
    TrainingLog log(log_in(folder_.file(name)), !snapshot.empty());
    for (int64_t i = first; i < end; ++i) {
      log.test(tested(i, 0, 0.5)), training.test(tested(i, 0, 0.5));
      log.iteration(iteration(i, 2)), training.iteration(iteration(i, 2));
    }
    training.write_course();
  }
  std::string read(const std::string& name) { return read_file(folder_.file(name)); }

  ScratchFolder folder_;
};

TEST_F(TrainingFolderTest, RefusesWhatItDidNotMake) {
  EXPECT_NE(refusal("none/t").find("there is no folder"), std::string::npos);
  fs::create_directory(folder_.file("foreign"));
  EXPECT_EQ(refusal("foreign"), "") << "an empty folder is taken";
  EXPECT_TRUE(fs::exists(folder_.file("foreign"))) << "and stays";
  for (const char* content : {"", "{}", "[1]", "no json", R"({"format": "cortado-machine", "version": 1})",
                              R"({"format": 1, "version": "1"})"}) {
    write_file_atomically(folder_.file("foreign/runs.json"), content);
    EXPECT_EQ(refusal("foreign", folder_.file("foreign/x_iter_1.solverstate")),
              "--output " + folder_.file("foreign") +
                  ": is a folder that `cortado train` did not make; give another name");
  }
  write_file_atomically(folder_.file("file"), "");
  EXPECT_NE(refusal("file").find("is there and is no folder"), std::string::npos);
  EXPECT_EQ(refusal("new"), "");
  EXPECT_FALSE(fs::exists(folder_.file("new"))) << "what never began leaves nothing";
}

TEST_F(TrainingFolderTest, GoesOnFromItsOwnSnapshotsAlone) {
  train("t", "", 0, 4);
  EXPECT_EQ(refusal("t"), "") << "it stopped before its first snapshot";
  write_file_atomically(folder_.file("t/x_iter_2.solverstate"), "");
  const std::string another =
      "--output " + folder_.file("t") +
      ": has another training; go on from one of its snapshots with --snapshot, or give another name";
  EXPECT_EQ(refusal("t"), another);
  EXPECT_EQ(refusal("t", folder_.file("x_iter_2.solverstate")), another);
  EXPECT_EQ(refusal("t", folder_.file("t/x_iter_2.solverstate")), "");
  EXPECT_EQ(refusal("t/", folder_.file("t/x_iter_2.solverstate")), "");

  const std::string solver = read("t/solver.prototxt");
  train("t", folder_.file("t/x_iter_2.solverstate"), 2, 6, {folder_.file("t/./solver.prototxt")});
  EXPECT_EQ(read("t/solver.prototxt"), solver) << "a run reads it";
  train("whole", "", 0, 6);
  EXPECT_EQ(read("t/summary.csv"), read("whole/summary.csv"));
  EXPECT_EQ(read("t/curve.svg"), read("whole/curve.svg"));
  const auto runs = nlohmann::json::parse(read("t/runs.json"));
  ASSERT_EQ(runs["runs"].size(), 2u);
  EXPECT_EQ(runs["runs"][1]["first_iteration"], 2);
  EXPECT_EQ(runs["runs"][1]["snapshot"], folder_.file("t/x_iter_2.solverstate"));
  EXPECT_FALSE(runs["runs"][0].contains("snapshot"));
  EXPECT_EQ(runs["runs"][0]["ranks"], 3);
}

}  // namespace
}  // namespace cortado
