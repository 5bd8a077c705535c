#include <fstream>
#include <lmdb.h>
#include <map>
#include <random>

#include "cortado/data/image.h"
#include "cortado/data/lmdb.h"

#include "tests/data/corruption.h"
#include "tests/data/support.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

using Records = std::map<std::string, std::string>;

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// A database that liblmdb makes in several transactions, with keys of all lengths in no order, values from
// none to several pages, records that are overwritten and records that are erased.
Records write_with_liblmdb(const std::string& path, int seed, int changes) {
  std::mt19937 random(seed);
  Records records;
  fs::create_directory(path);
  MDB_env* environment = nullptr;
  EXPECT_EQ(mdb_env_create(&environment), 0);
  EXPECT_EQ(mdb_env_set_mapsize(environment, size_t{1} << 30), 0);
  EXPECT_EQ(mdb_env_open(environment, path.c_str(), MDB_NOSYNC, 0664), 0);
  for (int done = 0; done < changes;) {
    MDB_txn* transaction = nullptr;
    MDB_dbi table = 0;
    EXPECT_EQ(mdb_txn_begin(environment, nullptr, 0, &transaction), 0);
    EXPECT_EQ(mdb_dbi_open(transaction, nullptr, 0, &table), 0);
    for (int i = 0; i < 200 && done < changes; ++i, ++done) {
      auto at = records.lower_bound(random_bytes(random, 2));
      const bool known = random() % 3 == 0 && at != records.end();
      const std::string key =
          known ? at->first : random_bytes(random, 1 + random() % (seed % 2 == 0 ? 511 : 12));
      MDB_val mdb_key{key.size(), const_cast<char*>(key.data())};
      if (known && random() % 2 == 0) {
        EXPECT_EQ(mdb_del(transaction, table, &mdb_key, nullptr), 0);
        records.erase(at);
        continue;
      }
      const std::string value = random_bytes(random, random() % 5 == 0 ? random() % 20000 : random() % 100);
      MDB_val mdb_value{value.size(), const_cast<char*>(value.data())};
      EXPECT_EQ(mdb_put(transaction, table, &mdb_key, &mdb_value, 0), 0);
      records[key] = value;
    }
    EXPECT_EQ(mdb_txn_commit(transaction), 0);
  }
  mdb_env_close(environment);
  return records;
}

std::string text_of(const std::vector<uint8_t>& value) { return {value.begin(), value.end()}; }

TEST(LmdbFile, HoldsWhatLiblmdbWrote) {
  for (int seed = 0; seed < 8; ++seed) {
    ScratchFolder folder;
    const Records records = write_with_liblmdb(folder / "db", seed, seed < 2 ? 5 : 700 * seed);
    LmdbReader reader(folder / "db");
    ASSERT_EQ(reader.size(), std::ssize(records)) << "seed " << seed;
    std::vector<const Records::value_type*> in_order;
    for (const auto& record : records) in_order.push_back(&record);
    auto check = [&](int64_t index) {
      const LmdbReader::Record record = reader.at(index);
      ASSERT_EQ(record.key, in_order[index]->first) << "record " << index << ", seed " << seed;
      ASSERT_EQ(text_of(record.value), in_order[index]->second) << "record " << index << ", seed " << seed;
    };
    for (int64_t i = 0; i < reader.size(); ++i) check(i);
    for (int64_t i = reader.size() - 1; i >= 0; --i) check(i);
    for (int64_t i = 0; i < 200; ++i) check((i * 7919 + seed) % reader.size());
  }
}

// Bytes that this process has asked the system for.
int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// A walk from leaf to leaf made shuffled trainings a tenth as fast.
TEST(LmdbFile, ARecordThatWasPassedIsFoundByOnePage) {
  ScratchFolder folder;
  write_with_liblmdb(folder / "db", 2, 2000);
  LmdbReader reader(folder / "db");
  reader.key(reader.size() - 1);
  constexpr int keys = 500, page = 4096;
  const int64_t before = bytes_read();
  for (int64_t i = 0; i < keys; ++i) reader.key(i * 7919 % reader.size());
  EXPECT_LE(bytes_read() - before, (keys + 1) * page);
}

// Reads all that can be read, in order, and the rest of a database in which single values are lost.
void read_all(const std::string& path) {
  LmdbReader reader(path);
  std::string last;
  for (int64_t i = 0; i < reader.size(); ++i) {
    try {
      const LmdbReader::Record record = reader.at(i);
      if (i > 0 && record.key <= last) throw std::runtime_error("keys are out of order");
      last = record.key;
    } catch (const BrokenRecord&) {
      last = reader.key(i);
    }
  }
  reader.at(0);
  reader.at(reader.size() / 2);
}

// One wrong byte made liblmdb end by SIGSEGV, SIGBUS or an assertion.
TEST(LmdbFile, NoCorruptionEndsInASignal) {
  ScratchFolder folder;
  std::vector<std::string> files;
  for (int seed : {2, 3}) {
    const std::string path = folder / ("db" + std::to_string(seed));
    write_with_liblmdb(path, seed, 600);
    files.push_back(read_text_file(path + "/data.mdb"));
  }
  expect_all_survive(1000, [&](int which) {
    write_bytes(folder / "corrupt.mdb", corrupted(files[which % 2], which, 4096));
    read_all(folder / "corrupt.mdb");
  });
}

TEST(LmdbFile, ADatabaseThatShrinksWhileItIsReadIsAnError) {
  ScratchFolder folder;
  write_with_liblmdb(folder / "db", 2, 2000);
  LmdbReader reader(folder / "db");
  reader.at(0);
  fs::resize_file(folder / "db/data.mdb", 3 * 4096);
  const std::string error = error_of([&] {
    for (int64_t i = 0; i < reader.size(); ++i) reader.at(i);
  });
  EXPECT_NE(error.find("the file ends before it"), std::string::npos) << error;
}

TEST(LmdbFile, ADatabaseThatLosesRecordsWhileItIsReadIsAnError) {
  ScratchFolder folder;
  write_with_liblmdb(folder / "db", 2, 2000);
  LmdbReader reader(folder / "db");
  reader.key(reader.size() - 1);
  std::string file = read_text_file(folder / "db/data.mdb");
  for (size_t page = 2; page < file.size() / 4096; ++page)
    if (char* const start = &file[page * 4096]; start[10] & 2) start[12] = static_cast<char>(start[12] - 2);
  write_bytes(folder / "db/data.mdb", file);
  const std::string error = error_of([&] { reader.key(0); });
  EXPECT_NE(error.find("records when it was read before"), std::string::npos) << error;
}

TEST(LmdbFile, ErrorsNameDatabaseAndPage) {
  ScratchFolder folder;
  write_with_liblmdb(folder / "db", 2, 2000);
  std::string file = read_text_file(folder / "db/data.mdb");
  for (size_t page = 2; page < file.size() / 4096; ++page)
    if ((file[page * 4096 + 10] & 2) != 0) file[page * 4096 + 10] = 64;  // leaves become something else
  write_bytes(folder / "db/data.mdb", file);
  LmdbReader reader(folder / "db");
  const std::string error = error_of([&] { reader.at(0); });
  EXPECT_NE(error.find(folder / "db is corrupt at page "), std::string::npos) << error;
  EXPECT_NE(error.find("it is no leaf"), std::string::npos) << error;
}

}  // namespace
}  // namespace cortado
