#include <filesystem>
#include <gtest/gtest.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

// What a command reads and what others made stays as it was, and what cannot be written is told at the start.
class FileErrors : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }
  CommandResult cortado(const std::string& arguments, const std::string& prelude = "") {
    return run_cortado(folder_.path(), arguments, prelude);
  }
  // One line, exit code 2, and no file more or less.
  void expect_error(const std::string& arguments, const std::vector<std::string>& parts,
                    const std::string& prelude = "") {
    const int before = folder_.count("");
    const CommandResult result = cortado(arguments, prelude);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    const size_t line = result.output.find("cortado: error: ");
    ASSERT_NE(line, std::string::npos) << result.output;
    const std::string message = result.output.substr(line);
    EXPECT_EQ(message.find('\n'), message.size() - 1) << "more than a line: " << message;
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    EXPECT_EQ(folder_.count(""), before) << arguments;
  }
  void flip_last_byte(const std::string& name) {
    std::string bytes = folder_.read(name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    folder_.write(name, bytes);
  }

  const std::string train_ = "train -threads 1 -solver solver.prototxt ";
  const std::string model_ = " --model net.prototxt --threads 1 --iterations 1 ";
  TemporaryFolder folder_;
};

TEST_F(FileErrors, EmptyNames) {
  for (const char* option : {"--snapshot", "--weights", "--log", "--plot", "--trace", "--output",
                             "--tensorboard", "--weights=a,,b", "--weights ,"})
    expect_error(
        train_ + option + (std::string(option).find_first_of("=,") == std::string::npos ? " ''" : ""),
        {"name of a file is empty"});
  expect_error("train --solver ''", {"--solver", "name of a file is empty"});
  for (const char* command :
       {"test --weights '' --model net.prototxt", "time --json '' --model net.prototxt",
        "verify --json '' --model net.prototxt", "show --dot '' --model net.prototxt",
        "plan --out '' --model net.prototxt --machine lassen", "machine --out ''",
        "simulate --report '' --model net.prototxt --machine lassen", "data cifar '' out", "data mean db ''",
        "classify --json '' x.jpg", "extract --out '' x.jpg"})
    expect_error(command, {"name of a file is empty"});
}

TEST_F(FileErrors, OutputsThatAreInputs) {
  const std::string reason = "this command reads that file, too";
  folder_.write("s.json", "{}");
  for (const char* option : {"--json", "--dot", "--prototxt"})
    expect_error("show --model net.prototxt " + std::string(option) + " ./net.prototxt", {option, reason});
  for (const std::string& command :
       {"time" + model_ + "--json net.prototxt", "time" + model_ + "--trace net.prototxt",
        "time" + model_ + "--strategy s.json --predict-out s.json", "verify" + model_ + "--json net.prototxt",
        "test" + model_ + "--weights w.h5 --json net.prototxt", train_ + "--log solver.prototxt",
        train_ + "--log net.prototxt", train_ + "--trace net.prototxt",
        train_ + "--weights s.json --log s.json",
        std::string("plan --model net.prototxt --machine s.json --out s.json"),
        std::string("simulate --model net.prototxt --machine s.json --json s.json"),
        std::string("simulate --model net.prototxt --machine lassen --strategy s.json --out s.json")})
    expect_error(command, {reason});
  EXPECT_EQ(folder_.read("net.prototxt"), small_net());
  EXPECT_EQ(folder_.read("solver.prototxt"), small_solver());
  expect_error(train_ + "--log x.svg --plot x.svg", {"--plot x.svg: --log names that file, too"});
}

TEST_F(FileErrors, SnapshotsThatWouldReplaceTheWeights) {
  ASSERT_EQ(cortado(train_).exit_code, 0);
  const std::string before = folder_.read("small_iter_20.caffemodel");
  expect_error(train_ + "--weights small_iter_20.caffemodel --set base_lr=0.5",
               {"snapshot_prefix small", "iteration 20 would replace small_iter_20.caffemodel"});
  EXPECT_EQ(folder_.read("small_iter_20.caffemodel"), before);
  EXPECT_EQ(cortado(train_ + "--weights small_iter_20.caffemodel --set snapshot_prefix=next").exit_code, 0);
  EXPECT_EQ(cortado(train_).exit_code, 0) << "an earlier training's snapshots may be replaced";
}

TEST_F(FileErrors, OutputsThatCannotBeWrittenAreToldAtTheStart) {
  const std::string reason = "there is no folder 'none'; make it first";
  for (const char* option : {"--log none/a", "--plot none/a.svg", "--trace none/a", "--output none/a",
                             "--set snapshot_prefix=none/a"})
    expect_error(train_ + option, {reason});
  const CommandResult result = cortado("test" + model_ + "--weights none.h5 --json none/j");
  EXPECT_EQ(result.output, "cortado: error: --json none/j: " + reason + "\n");
  fs::create_directory(folder_.file("folder"));
  expect_error(train_ + "--plot folder.svg --log folder", {"--log folder: is a folder"});
  expect_error(train_ + "--tensorboard net.prototxt/a",
               {"--tensorboard net.prototxt/a: the folder cannot be made"});
  expect_error("show --model net.prototxt --json net.prototxt/j", {"there is no folder 'net.prototxt'"});
}

TEST_F(FileErrors, APageLeavesWhatIsInItsFolder) {
  fs::create_directory(folder_.file("page"));
  folder_.write("page/notes.txt", "mine");
  ASSERT_EQ(cortado("time" + model_ + "--report page/").exit_code, 0);
  EXPECT_EQ(folder_.read("page/notes.txt"), "mine");
  EXPECT_NE(folder_.read("page/index.html"), "");
}

// The limit is the shell's alone; the command makes an error of the signal that it would send.
TEST_F(FileErrors, AFileSizeLimitIsAnErrorThatNamesTheFile) {
  folder_.write("out.json", "an earlier one");
  expect_error("show --model net.prototxt --json out.json", {"cannot write out.json: File too large"},
               "ulimit -f 1;");
  EXPECT_EQ(folder_.read("out.json"), "an earlier one");
  std::string net = small_net();
  net.replace(net.find("num_output: 3"), 13, "num_output: 3000");
  folder_.write("net.prototxt", net);
  for (std::string format : {"cortado", "caffe", "hdf5"})
    expect_error(train_ + "--set max_iter=2 --snapshot-format " + format, {"cannot write small_iter_2."},
                 "ulimit -f 64;");
}

TEST_F(FileErrors, ADamagedSnapshotGivesWayToTheOneBefore) {
  for (std::string format : {"cortado", "caffe", "hdf5"}) {
    const std::string ending = format == "cortado" ? ".safetensors"
                               : format == "caffe" ? ".solverstate"
                                                   : ".solverstate.h5";
    const std::string last = "small_iter_20" + ending, before = "small_iter_15" + ending;
    ASSERT_EQ(cortado(train_ + "--set snapshot=5 --snapshot-format " + format).exit_code, 0);
    const std::string whole = folder_.read(last);
    flip_last_byte(last);
    const CommandResult result = cortado(train_ + "--snapshot-format " + format + " --snapshot " + last);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("cortado: warning: " + last +
                                 " is damaged: its checksum does not fit; going on from " + before + ","),
              std::string::npos)
        << result.output;
    EXPECT_EQ(folder_.read(last), whole) << "trained again from 15";
    for (const char* iteration : {"5", "10", "15"})
      fs::remove(folder_.file("small_iter_" + std::string(iteration) + ending));
    flip_last_byte(last);
    expect_error(train_ + "--snapshot " + last,
                 {last + " is damaged: its checksum does not fit", "no sound earlier"});
    fs::remove(folder_.file(last));
  }
}

TEST_F(FileErrors, ASolverStateOfAnotherSolver) {
  for (std::string format : {"caffe", "hdf5"}) {
    ASSERT_EQ(cortado(train_ + "--snapshot-format " + format).exit_code, 0);
    const std::string state =
        format == "caffe" ? "small_iter_20.solverstate" : "small_iter_20.solverstate.h5";
    expect_error(train_ + "--set type=AdaGrad --set momentum=0 --snapshot " + state,
                 {state + ": was made by solver SGD, this training uses AdaGrad"});
  }
}

TEST_F(FileErrors, ANonFiniteLossNamesNoSnapshotThatItCameFrom) {
  ASSERT_EQ(cortado(train_ + "--snapshot-format cortado").exit_code, 0);
  expect_error(train_ +
                   "--snapshot small_iter_20.safetensors --set max_iter=1000 --set base_lr=1e30 "
                   "--snapshot-format cortado",
               {"no snapshot was made since the training went on from small_iter_20.safetensors"});
}

TEST_F(FileErrors, SnapshotsBeyondCaffesLimit) {
  std::string net = small_net();
  net.replace(net.find("num_output: 3"), 13, "num_output: 9000000");
  folder_.write("net.prototxt", net);
  expect_error(train_, {"solver.prototxt: snapshot_format: the .caffemodel of this net would have 2.1",
                        "HDF5 or cortado"});
}

// Two trainings at a time on one prefix; the second is refused, and goes once the first was killed.
TEST_F(FileErrors, APrefixThatAnotherTrainingUses) {
  const pid_t child = fork();
  if (child == 0) {
    const std::string line =
        "cd '" + folder_.path() +
        "' && exec " CORTADO_COMMAND
        " train --threads 1 --solver solver.prototxt --set max_iter=100000000 --set display=0 "
        ">out.txt 2>&1";
    execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    _exit(127);
  }
  const std::string owner = "process " + std::to_string(child) + " on ";
  for (int i = 0; i < 3000 && folder_.read("small_iter.lock").find(owner) == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  expect_error(train_,
               {"snapshot_prefix small: another training (" + owner, "set snapshot_prefix to another"});
  EXPECT_EQ(cortado(train_ + "--set snapshot_after_train=false").exit_code, 0) << "it writes no snapshot";
  EXPECT_EQ(cortado(train_ + "--set snapshot_prefix=other").exit_code, 0);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(cortado(train_).exit_code, 0);
  EXPECT_FALSE(folder_.has("small_iter.lock"));
}

}  // namespace
}  // namespace cortado
