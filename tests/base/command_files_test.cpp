#include "cortado/base/command_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "cortado/base/file.h"

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

class CommandFilesTest : public testing::Test {
 protected:
  // The complaint about an output while the command reads the file "input".
  std::string refusal(const std::string& name) {
    return error_of([&] {
      CommandFiles files;
      files.reads(folder_.file("input"));
      files.writes("--json", folder_.file(name));
      files.check();
    });
  }

  void SetUp() override { write_file_atomically(folder_.file("input"), "precious"); }
  ScratchFolder folder_;
};

TEST_F(CommandFilesTest, OrdinaryOutputsPass) {
  EXPECT_EQ(refusal("new"), "");
  write_file_atomically(folder_.file("old"), "an earlier output");
  EXPECT_EQ(refusal("old"), "");
  CommandFiles files;
  files.writes("--json", "");
  files.writes("--json", "/dev/null");
  files.writes_page("--report", folder_.file("a/b/c"));
  EXPECT_EQ(error_of([&] { files.check(); }), "");
  EXPECT_EQ(folder_.entries(), 2u) << "checking makes nothing";
}

TEST_F(CommandFilesTest, FoldersForNewFilesAreCheckedAndMade) {
  const auto check = [&](const std::string& folder) {
    CommandFiles files;
    files.writes_into("--tensorboard", "");
    files.writes_into("--tensorboard", folder);
    return error_of([&] { files.check(); });
  };
  EXPECT_EQ(check(folder_.file("a/b")), "");
  EXPECT_EQ(folder_.entries(), 1u) << "checking makes nothing";
  const std::string reason = ": the folder cannot be made: Not a directory";
  EXPECT_EQ(check(folder_.file("input")), "--tensorboard " + folder_.file("input") + reason);
  EXPECT_EQ(check(folder_.file("input/b")), "--tensorboard " + folder_.file("input/b") + reason);
  make_folder("--tensorboard", folder_.file("a/b"));
  make_folder("--tensorboard", folder_.file("a/b"));
  EXPECT_TRUE(fs::is_directory(folder_.file("a/b")));
  EXPECT_EQ(error_of([&] { make_folder("--tensorboard", folder_.file("input/b")); }),
            "--tensorboard " + folder_.file("input/b") + reason);
}

TEST_F(CommandFilesTest, AnInputIsNoOutputByWhateverName) {
  const std::string reason = ": this command reads that file, too; give another name";
  EXPECT_EQ(refusal("input"), "--json " + folder_.file("input") + reason);
  EXPECT_EQ(refusal("./input"), "--json " + folder_.file("./input") + reason);
  fs::create_symlink("input", folder_.file("link"));
  EXPECT_NE(refusal("link").find(reason), std::string::npos);
  CommandFiles page;
  fs::create_directory(folder_.file("page"));
  write_file_atomically(folder_.file("page/index.html"), "read");
  page.reads(folder_.file("page/index.html"));
  page.writes_page("--report", folder_.file("page/"));
  EXPECT_NE(error_of([&] { page.check(); }).find(reason), std::string::npos);
}

TEST_F(CommandFilesTest, TwoOutputsOfOneNameAreRefused) {
  CommandFiles files;
  files.writes("--json", folder_.file("one"));
  files.writes("--trace", folder_.file("./one"));
  EXPECT_EQ(error_of([&] { files.check(); }),
            "--trace " + folder_.file("./one") + ": --json names that file, too; give another");
}

TEST_F(CommandFilesTest, FoldersThatCannotTakeAnOutput) {
  EXPECT_EQ(refusal("none/j"), "--json " + folder_.file("none/j") + ": there is no folder '" +
                                   folder_.file("none") + "'; make it first");
  EXPECT_NE(refusal("input/j").find("there is no folder"), std::string::npos);
  EXPECT_NE(refusal(".").find("is a folder; give the name of a file"), std::string::npos);
  if (geteuid() == 0) return;  // root may write anywhere
  fs::create_directory(folder_.file("closed"));
  fs::permissions(folder_.file("closed"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(refusal("closed/j").find("cannot be written: Permission denied"), std::string::npos);
}

}  // namespace
}  // namespace cortado
