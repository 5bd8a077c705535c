#include "cortado/data/lmdb.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

std::string key_of(int i) { return std::to_string(100000 + i); }
std::string value_of(int i) { return std::string(1 + i * 7919 % 9000, static_cast<char>(i)); }

void write_numbers(const std::string& path, int count) {
  LmdbWriter writer(path, false);
  for (int i = 0; i < count; ++i) writer.put(key_of(i), value_of(i));
  writer.finish();
}

// More than the first map of 64 MiB, so that it must grow.
TEST(Lmdb, RoundTripInAnyOrder) {
  ScratchFolder folder;
  const int count = 16000;
  write_numbers(folder / "db", count);
  EXPECT_GT(fs::file_size(folder / "db/data.mdb"), size_t{64} << 20);
  LmdbReader reader(folder / "db"), again(folder / "db");
  ASSERT_EQ(reader.size(), count);
  for (int i = 0, at = 0; i < 300; ++i, at = (at * 31 + 7) % count) {
    auto record = reader.at(at);
    ASSERT_EQ(record.key, key_of(at));
    ASSERT_EQ(std::string(record.value.begin(), record.value.end()), value_of(at));
  }
  for (int i : {count - 1, 0, 1, count - 2}) EXPECT_EQ(again.at(i).key, key_of(i));
}

TEST(Lmdb, OverwritesOnlyWhenAsked) {
  ScratchFolder folder;
  write_numbers(folder / "db", 3);
  EXPECT_NE(error_of([&] { LmdbWriter(folder / "db", false); }).find("--force"), std::string::npos);
  {
    LmdbWriter writer(folder / "db", true);
    writer.put("one", "value");
  }
  EXPECT_EQ(LmdbReader(folder / "db").size(), 3) << "an unfinished writer leaves the old database";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / ""), {}), 1);
  LmdbWriter writer(folder / "db", true);
  writer.put("one", "value");
  writer.finish();
  EXPECT_EQ(LmdbReader(folder / "db").size(), 1);
}

TEST(Lmdb, BadDatabasesAreRefused) {
  ScratchFolder folder;
  auto opening = [&](const std::string& name) { return error_of([&] { LmdbReader reader(folder / name); }); };
  EXPECT_NE(opening("absent").find("does not exist"), std::string::npos);
  fs::create_directory(folder / "leveldb");
  EXPECT_NE(opening("leveldb").find("holds no data.mdb"), std::string::npos);
  fs::create_directory(folder / "text");
  write_bytes(folder / "text/data.mdb", std::string(20000, 'x'));
  EXPECT_NE(opening("text").find("is not an LMDB database"), std::string::npos);
  write_numbers(folder / "db", 200);
  const auto whole = fs::file_size(folder / "db/data.mdb");
  for (uint64_t size : {whole - 1, whole / 2, uint64_t{8192}, uint64_t{4096}, uint64_t{100}, uint64_t{0}}) {
    fs::resize_file(folder / "db/data.mdb", size);
    EXPECT_NE(opening("db"), "") << size << " of " << whole << " bytes";
  }
}

}  // namespace
}  // namespace cortado
