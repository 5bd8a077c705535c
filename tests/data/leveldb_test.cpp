// LevelDB databases, written by LevelDB's own library, become LMDBs of the same records.
#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <leveldb/db.h>

#include "cortado/data/import.h"
#include "cortado/data/lmdb.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<leveldb::DB> open_leveldb(const std::string& path) {
  leveldb::Options options;
  options.create_if_missing = true;
  leveldb::DB* database = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, path, &database);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return std::unique_ptr<leveldb::DB>(database);
}

std::string leveldb_value(int i) {
  return std::string(static_cast<size_t>(100 * i), static_cast<char>('a' + i % 26));
}

// Records 0 to `count` - 1, written last to first; `tables`: in table files, else in the log alone.
void write_leveldb(const std::string& path, int count, bool tables) {
  const auto database = open_leveldb(path);
  for (int i = count - 1; i >= 0; --i)
    EXPECT_TRUE(database->Put({}, fmt::format("{:08}_x", i), leveldb_value(i)).ok());
  if (tables) database->CompactRange(nullptr, nullptr);
}

TEST(LevelDb, BecomesAnLmdbOfTheSameRecords) {
  for (const bool tables : {false, true}) {
    ScratchFolder folder;
    write_leveldb(folder / "level", 50, tables);
    EXPECT_EQ(import_leveldb(folder / "level", folder / "lmdb", {}), 50);
    LmdbReader reader(folder / "lmdb");
    ASSERT_EQ(reader.size(), 50);
    for (int i = 0; i < 50; ++i) {
      const LmdbReader::Record record = reader.at(i);
      EXPECT_EQ(record.key, fmt::format("{:08}_x", i));
      EXPECT_EQ(std::string(record.value.begin(), record.value.end()), leveldb_value(i));
    }
    EXPECT_EQ(import_leveldb(folder / "level", folder / "lmdb", {.force = true}), 50)
        << "it can be read again";
  }
}

TEST(LevelDb, WrongInputIsRefusedAndLeavesNothing) {
  ScratchFolder folder;
  const auto message = [&](const std::string& path) {
    return error_of([&] { import_leveldb(path, folder / "lmdb", {}); });
  };
  EXPECT_EQ(message(folder / "nowhere"),
            fmt::format("{} holds no file CURRENT, so it is not a LevelDB database", folder / "nowhere"));
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  write_leveldb(folder / "none", 0, false);
  EXPECT_EQ(message(folder / "none"), fmt::format("LevelDB {} has no records", folder / "none"));
  write_leveldb(folder / "held", 3, false);
  {
    const auto holder = open_leveldb(folder / "held");
    EXPECT_NE(message(folder / "held").find("cannot read LevelDB"), std::string::npos);
  }
  write_leveldb(folder / "damaged", 50, true);
  int damaged = 0;
  for (const auto& file : fs::directory_iterator(folder / "damaged")) {
    if (file.path().extension() != ".ldb") continue;
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(file.file_size() / 2));
    bytes.write("damage", 6);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  EXPECT_NE(message(folder / "damaged").find("cannot read LevelDB"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "lmdb"));
}

}  // namespace
}  // namespace cortado
