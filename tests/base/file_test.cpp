#include "cortado/base/file.h"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

TEST(File, MissingFileAndFolderAreNamed) {
  EXPECT_EQ(error_of([] { read_file("/no/such/file"); }),
            "cannot read /no/such/file: No such file or directory");
  EXPECT_NE(error_of([] { read_file("/tmp"); }).find("it is a folder"), std::string::npos);
}

TEST(File, AnUnfinishedWriteLeavesTheOldFileAndNoOther) {
  ScratchFolder folder;
  std::string path = folder.file("snapshot");
  write_file_atomically(path, "old");
  {
    FileWriter writer(path);
    writer.write("half");
    EXPECT_EQ(folder.entries(), 2u);
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

// Files of a process that is gone go; those of one that is there, of other names and of other kinds stay.
TEST(File, LeftTemporariesOfDeadProcessesAreRemoved) {
  ScratchFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const std::string random = "-0123456789abcdef.tmp", path = folder.file("s_iter_");
  const auto name = [&](const std::string& begin, pid_t process) {
    return folder.file(begin + "." + std::to_string(process) + random);
  };
  const std::string left = name("s_iter_10.safetensors", child);
  const std::vector<std::string> kept = {name("s_iter_20.safetensors", getpid()), name("t_iter_10", child),
                                         folder.file("s_iter_10.safetensors"), folder.file("s_iter_x.tmp"),
                                         name("s_iter_1", child) + ".gz"};
  write_file_atomically(left, "half");
  for (const std::string& file : kept) write_file_atomically(file, "whole");
  fs::create_directory(name("s_iter_folder", child));
  remove_left_temporaries(path);
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& file : kept) EXPECT_TRUE(fs::exists(file)) << file;
  EXPECT_TRUE(fs::exists(name("s_iter_folder", child)));
  remove_left_temporaries(folder.file("no/such/s_iter_"));
}

// A limit on the size of files stands for a full disk.
TEST(File, AFullDiskIsAUserErrorThatNamesTheFile) {
  ScratchFolder folder;
  const std::string path = folder.file("snapshot"), big(1 << 20, 'x');
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(error_of([&] { write_file_atomically(path, big); }), "cannot write " + path + ": File too large");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(folder.entries(), 0u);
  EXPECT_EQ(error_of([&] { write_file_atomically(folder.file("no/j"), "text"); }),
            "cannot write " + folder.file("no/j") + ": No such file or directory");
}

TEST(File, AReplacedFileIsWholeAndKeepsItsPermissions) {
  ScratchFolder folder;
  std::string path = folder.file("f"), big(1 << 20, 'x');
  write_file_atomically(path, "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomically(path, big);
  EXPECT_EQ(read_file(path), big);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(File, ALinkStaysOne) {
  ScratchFolder folder;
  write_file_atomically(folder.file("real"), "old");
  fs::create_symlink("real", folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("real")), "new");
}

TEST(File, APipeIsWrittenNotReplaced) {
  ScratchFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    write_file_atomically(pipe, "text");
    _exit(0);
  }
  EXPECT_EQ(read_file(pipe), "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(File, TemporaryNamesAreNobodys) {
  const std::string one = temporary_name("folder/name"), other = temporary_name("folder/name");
  EXPECT_NE(one, other);
  EXPECT_EQ(one.find("folder/name." + std::to_string(getpid()) + "-"), 0u) << one;
  ScratchFolder folder;
  const std::string long_name = folder.file(std::string(255, 'n'));
  write_file_atomically(long_name, "text");
  EXPECT_EQ(read_file(long_name), "text");
}

}  // namespace
}  // namespace cortado
