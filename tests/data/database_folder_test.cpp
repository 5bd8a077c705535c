#include "cortado/data/database_folder.h"

#include "cortado/data/import.h"
#include "cortado/data/lmdb.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

void write_database(const std::string& path, bool replace = false, int records = 1) {
  LmdbWriter writer(path, replace);
  for (int i = 0; i < records; ++i) writer.put(std::to_string(i), "value");
  writer.finish();
}

class DatabaseFolderTest : public testing::Test {
 protected:
  size_t entries(const std::string& name = "") {
    const auto all = fs::directory_iterator(folder_ / name);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  // Whether making a database over `name` by force is refused and leaves all that is there.
  bool is_kept(const std::string& name, const std::vector<std::string>& inputs = {}) {
    const size_t before = entries(), within = entries(name);
    const std::string message = error_of([&] { LmdbWriter(folder_ / name, true, inputs); });
    return message.find("not replaced") != std::string::npos && entries() == before &&
           entries(name) == within;
  }
  ScratchFolder folder_;
};

TEST_F(DatabaseFolderTest, ReplacesADatabaseAndNothingElse) {
  write_database(folder_ / "db");
  write_database(folder_ / "db", true, 7);
  EXPECT_EQ(LmdbReader(folder_ / "db").size(), 7);
  EXPECT_EQ(entries(), 1u);
  write_bytes(folder_ / "db/labels.txt", "a\n");
  write_bytes(folder_ / "db/lock.mdb", "");
  write_database(folder_ / "db", true, 3);
  EXPECT_EQ(LmdbReader(folder_ / "db").size(), 3);
  EXPECT_EQ(entries("db"), 1u) << "the old labels went with their database";

  write_bytes(folder_ / "db/notes.txt", "mine");
  EXPECT_TRUE(is_kept("db"));
  fs::remove(folder_ / "db/notes.txt");
  fs::create_directory(folder_ / "db/list.txt");
  EXPECT_TRUE(is_kept("db")) << "a folder of a file's name";
  fs::remove(folder_ / "db/list.txt");
  EXPECT_FALSE(is_kept("db"));
}

TEST_F(DatabaseFolderTest, FoldersThatOnlyLookTheSameStay) {
  fs::create_directories(folder_ / "lists");
  write_bytes(folder_ / "lists/list.txt", "mine");
  EXPECT_TRUE(is_kept("lists"));
  fs::create_directories(folder_ / "other");
  write_bytes(folder_ / "other/data.mdb", std::string(20000, 'x'));
  EXPECT_TRUE(is_kept("other")) << "no LMDB";
  write_bytes(folder_ / "file", "mine");
  EXPECT_NE(error_of([&] { LmdbWriter(folder_ / "file", true); }).find("not replaced"), std::string::npos);
  fs::create_directories(folder_ / "empty");
  write_database(folder_ / "empty", true);
  EXPECT_EQ(LmdbReader(folder_ / "empty").size(), 1);
}

TEST_F(DatabaseFolderTest, AnInputStays) {
  write_database(folder_ / "db");
  write_bytes(folder_ / "db/list.txt", "a.png 0\n");
  EXPECT_TRUE(is_kept("db", {folder_ / "db/list.txt"}));
  EXPECT_TRUE(is_kept("db", {folder_ / "db"}));
  EXPECT_TRUE(is_kept("db", {folder_ / "other/../db/"}));
  fs::create_symlink("db/list.txt", folder_ / "link");
  EXPECT_TRUE(is_kept("db", {folder_ / "link"}));
  EXPECT_FALSE(is_kept("db", {folder_ / "", folder_ / "other"}));
}

TEST_F(DatabaseFolderTest, ALinkedDatabaseIsReplacedWhereItLies) {
  fs::create_directory(folder_ / "large-disk");
  write_database(folder_ / "large-disk/db");
  fs::create_symlink("large-disk/db", folder_ / "db");
  write_database(folder_ / "db/", true, 5);
  EXPECT_TRUE(fs::is_symlink(folder_ / "db"));
  EXPECT_EQ(LmdbReader(folder_ / "large-disk/db").size(), 5);
  EXPECT_EQ(entries("large-disk"), 1u);
}

TEST_F(DatabaseFolderTest, WhatIsNotFinishedGoesWithTheFoldersMadeForIt) {
  {
    LmdbWriter writer(folder_ / "a/b/new/", false);
    writer.put("key", "value");
    EXPECT_FALSE(fs::exists(folder_ / "a/b/new"));
  }
  EXPECT_EQ(entries(), 0u);
  write_database(folder_ / "a/b/new/");
  EXPECT_EQ(LmdbReader(folder_ / "a/b/new").size(), 1);
  EXPECT_EQ(entries("a/b"), 1u);
}

TEST_F(DatabaseFolderTest, WhatCameMeanwhileStays) {
  LmdbWriter writer(folder_ / "db", false);
  writer.put("key", "value");
  write_database(folder_ / "db", false, 9);
  EXPECT_NE(error_of([&] { writer.finish(); }).find("exists already"), std::string::npos);
  EXPECT_EQ(LmdbReader(folder_ / "db").size(), 9);
}

// The second of two databases cannot be made: the first keeps what it was.
TEST_F(DatabaseFolderTest, CifarReplacesBothDatabasesOrNone) {
  const std::string record(3073, '\1');
  for (int i = 1; i <= 5; ++i) write_bytes(folder_ / ("data_batch_" + std::to_string(i) + ".bin"), record);
  write_bytes(folder_ / "test_batch.bin", record);
  EXPECT_EQ(import_cifar(folder_ / "", folder_ / "out", {}), 6);
  write_bytes(folder_ / "data_batch_1.bin", record + record);
  write_bytes(folder_ / "test_batch.bin", record.substr(1));
  EXPECT_NE(error_of([&] { import_cifar(folder_ / "", folder_ / "out", {.force = true}); }), "");
  EXPECT_EQ(LmdbReader(folder_ / "out/cifar10_train_lmdb").size(), 5);
  EXPECT_EQ(entries("out"), 2u);
  EXPECT_NE(error_of([&] { import_cifar(folder_ / "", folder_ / "new", {}); }), "");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

}  // namespace
}  // namespace cortado
