#include <filesystem>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/app/run_command.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

// `cortado data` loses nothing that it did not make.
class DataCommand : public testing::Test {
 protected:
  CommandResult cortado(const std::string& arguments) { return run_cortado(folder_.path(), arguments); }

  // Makes a folder of one class with one image, and another that is nobody's database.
  void SetUp() override {
    fs::create_directories(folder_.file("pics/cat"));
    fs::copy(CORTADO_SOURCE_DIR "/tests/data/images/rgb.png", folder_.file("pics/cat/1.png"));
    fs::create_directory(folder_.file("thesis"));
    folder_.write("thesis/chapter1.tex", "years of work");
  }
  void expect_refused(const std::string& arguments) {
    const int before = folder_.count("");
    const CommandResult result = cortado(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments << ": " << result.output;
    EXPECT_EQ(result.output.find("cortado: error: "), 0u) << result.output;
    EXPECT_EQ(folder_.count(""), before) << arguments;
    EXPECT_EQ(folder_.read("thesis/chapter1.tex"), "years of work");
    EXPECT_TRUE(folder_.has("pics/cat/1.png"));
  }
  std::string records(const std::string& database) {
    return cortado("data mean " + database + " /dev/null").output.substr(0, 30);
  }
  TemporaryFolder folder_;
};

TEST_F(DataCommand, ForceReplacesNoFolderThatItDidNotMake) {
  expect_refused("data folders pics thesis --force");
  expect_refused("data folders pics pics --force");
  expect_refused("data images pics/ thesis/chapter1.tex thesis --force");
  expect_refused("data generate --samples 4 .");
  expect_refused("data generate --samples 4 --force thesis/chapter1.tex");
}

TEST_F(DataCommand, ForceReplacesNoFolderThatTheCommandWorksIn) {
  fs::create_directories(folder_.file("outer/inner"));
  folder_.write("outer/kept", "mine");
  folder_.write("outer/inner/kept", "mine");
  for (const char* here : {".", "./", "$PWD", "..", "../", "../inner/", "../../outer"}) {
    const CommandResult result =
        run_cortado(folder_.file("outer/inner"), "data generate --samples 4 --force " + std::string(here));
    EXPECT_EQ(result.exit_code, 2) << here << ": " << result.output;
    EXPECT_EQ(folder_.read("outer/kept"), "mine") << here;
    EXPECT_EQ(folder_.read("outer/inner/kept"), "mine") << here;
  }
}

TEST_F(DataCommand, AClosingSlashChangesNothing) {
  EXPECT_EQ(cortado("data generate mydb/ --samples 4").exit_code, 0);
  EXPECT_TRUE(folder_.has("mydb/data.mdb"));
  expect_refused("data generate mydb/ --samples 4");
  EXPECT_EQ(cortado("data generate mydb/ --samples 3000 --force").exit_code, 0);
  EXPECT_GT(fs::file_size(folder_.file("mydb/data.mdb")), 3000u * 3072);
  EXPECT_EQ(folder_.count(""), 3);
  expect_refused("data generate failing/ --samples 0");
  EXPECT_FALSE(folder_.has("failing"));
}

TEST_F(DataCommand, TheWorkingFolderStaysThoughItIsADatabase) {
  ASSERT_EQ(cortado("data generate mydb --samples 4").exit_code, 0);
  const CommandResult result = run_cortado(folder_.file("mydb"), "data generate ../mydb --samples 4 --force");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.output.find("working folder"), std::string::npos) << result.output;
}

TEST_F(DataCommand, FoldersOfAUserWhateverTheirNameStay) {
  for (const char* name : {"x.partial", "x.tmp", "x.new", "x.old"}) {
    fs::create_directory(folder_.file(name));
    folder_.write(std::string(name) + "/mine", "mine");
  }
  ASSERT_EQ(cortado("data generate x --samples 4").exit_code, 0);
  ASSERT_EQ(cortado("data generate x --samples 4 --force").exit_code, 0);
  for (const char* name : {"x.partial", "x.tmp", "x.new", "x.old"})
    EXPECT_EQ(folder_.read(std::string(name) + "/mine"), "mine") << name;
}

TEST_F(DataCommand, FoldersWriteTheirLabelsWithTheDatabase) {
  ASSERT_EQ(cortado("data folders pics db").exit_code, 0);
  ASSERT_EQ(cortado("data folders pics/ db/ --force").exit_code, 0);
  EXPECT_EQ(folder_.read("db/labels.txt"), "cat\n");
  EXPECT_EQ(folder_.read("db/list.txt"), "cat/1.png 0\n");
  EXPECT_EQ(cortado("data images pics/ db/list.txt db --force").exit_code, 2) << "the list would go";
  EXPECT_EQ(folder_.read("db/list.txt"), "cat/1.png 0\n");
}

TEST_F(DataCommand, AMeanIsWrittenBesideItsDatabase) {
  ASSERT_EQ(cortado("data generate db --samples 4").exit_code, 0);
  const std::string before = folder_.read("db/data.mdb");
  for (const char* out : {"db/data.mdb", "db", "none/mean", "db/../db/data.mdb"})
    expect_refused("data mean db " + std::string(out));
  EXPECT_EQ(folder_.read("db/data.mdb"), before);
  folder_.write("mean", "an earlier one");
  EXPECT_EQ(run_cortado(folder_.path(), "data mean db mean", "ulimit -f 1;").exit_code, 2);
  EXPECT_EQ(folder_.read("mean"), "an earlier one");
  EXPECT_EQ(folder_.count("mean"), 1);
  EXPECT_EQ(cortado("data mean db mean").exit_code, 0);
  EXPECT_NE(folder_.read("mean"), "an earlier one");
}

// A limit on the size of files stands for a full disk.
TEST_F(DataCommand, AFullDiskLeavesTheOldDatabase) {
  ASSERT_EQ(cortado("data generate db --samples 4").exit_code, 0);
  const std::string before = folder_.read("db/data.mdb");
  const CommandResult result =
      run_cortado(folder_.path(), "data generate db --samples 2000 --force", "ulimit -f 512;");
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_EQ(folder_.read("db/data.mdb"), before);
  EXPECT_EQ(folder_.count(""), 3) << "a temporary folder stayed";
}

// Killed at moments from before the import to after it: the database is the old or the new one, whole.
TEST_F(DataCommand, AKillLeavesAWholeDatabase) {
  ASSERT_EQ(cortado("data generate db --samples 4").exit_code, 0);
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string line = "cd '" + folder_.path() +
                               "' && exec " CORTADO_COMMAND
                               " data generate db --samples 400 --force >out.txt 2>&1";
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    const CommandResult mean = cortado("data mean db mean");
    EXPECT_EQ(mean.exit_code, 0) << mean.output;
  }
}

}  // namespace
}  // namespace cortado
