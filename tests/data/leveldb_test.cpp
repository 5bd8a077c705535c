// Folders that LevelDB's own library wrote (make_leveldb.py) are read without it: as a source of training,
// and to make an LMDB of.
#include "cortado/data/leveldb.h"

#include <fmt/format.h>
#include <set>

#include "cortado/base/crc32c.h"
#include "cortado/data/datum.h"
#include "cortado/data/import.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/open_reader.h"
#include "cortado/data/snappy.h"

#include "tests/data/corruption.h"
#include "tests/data/support.h"

namespace cortado {
namespace {

namespace fs = std::filesystem;

std::string stored_leveldb(const std::string& name) {
  return std::string(CORTADO_SOURCE_DIR) + "/tests/data/leveldb/" + name;
}
constexpr const char* leveldb_names[] = {"tables", "log", "plain"};

// Numbers of the records that are left, in key order.
std::vector<int> left_records() {
  std::vector<int> numbers;
  for (int i = 0; i < 40; ++i)
    if (i != 7) numbers.push_back(i);
  return numbers;
}
int label_of_record(int number) { return number == 3 ? 103 : number; }
uint8_t pixel_of_record(int number, int place) {
  return static_cast<uint8_t>(number % 2 ? 37 * place + 101 * number : number);
}

TEST(LevelDb, HasTheLastWriteOfEachKey) {
  for (const char* name : leveldb_names) {
    SCOPED_TRACE(name);
    LeveldbReader reader(stored_leveldb(name));
    const std::vector<int> numbers = left_records();
    ASSERT_EQ(reader.size(), static_cast<int64_t>(numbers.size()));
    for (int64_t i : {0, 38, 3, 4, 5, 20, 19, 7, 6}) {
      const int number = numbers[static_cast<size_t>(i)];
      EXPECT_EQ(reader.key(i), fmt::format("{:08}_image", number));
      const DatabaseRecord record = reader.at(i);
      EXPECT_EQ(record.key, reader.key(i));
      caffe::Datum datum;
      parse_datum(record.value, datum);
      EXPECT_EQ(datum.label(), label_of_record(number));
      ASSERT_EQ(datum.data().size(), 192u);
      EXPECT_EQ(static_cast<uint8_t>(datum.data()[1]), pixel_of_record(number, 3));
    }
  }
}

// Through the layer, by several threads, twice at the same time: any number of processes may.
TEST(LevelDb, IsASourceOfTraining) {
  for (const char* name : leveldb_names) {
    SourceOptions source;
    source.source = stored_leveldb(name);
    source.batch_size = 13;
    source.leveldb = true;
    ReaderOptions options{.seed = 1, .tops = 2, .layer_name = "data", .threads = 3};
    const auto reader = open_reader(source, options), other = open_reader(source, options);
    EXPECT_EQ(reader->records(), 39);
    EXPECT_EQ(reader->shapes(), (std::vector<Shape>{{13, 3, 8, 8}, {13}}));
    const std::vector<int> numbers = left_records();
    for (int batch = 0; batch < 4; ++batch) {
      const Batch read = reader->next();
      other->next();
      for (int i = 0; i < 13; ++i) {
        const int number = numbers[static_cast<size_t>((13 * batch + i) % 39)];
        ASSERT_EQ(read.tensors[1][i], label_of_record(number)) << name;
        for (int place = 0; place < 192; ++place)
          ASSERT_EQ(read.tensors[0][192 * i + place], pixel_of_record(number, place)) << name;
      }
    }
  }
}

TEST(LevelDb, BecomesAnLmdbOfTheSameRecords) {
  for (const char* name : leveldb_names) {
    ScratchFolder folder;
    EXPECT_EQ(import_leveldb(stored_leveldb(name), folder / "lmdb", {}), 39);
    LmdbReader lmdb(folder / "lmdb");
    LeveldbReader level(stored_leveldb(name));
    ASSERT_EQ(lmdb.size(), 39);
    for (int i = 0; i < 39; ++i) {
      EXPECT_EQ(lmdb.at(i).key, level.key(i));
      EXPECT_EQ(lmdb.at(i).value, level.at(i).value);
    }
  }
}

TEST(LevelDb, NothingIsWrittenIntoItsFolder) {
  ScratchFolder folder;
  fs::copy(stored_leveldb("tables"), folder / "db");
  const auto names_in = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder / "db")) found.insert(entry.path().filename());
    return found;
  };
  const auto before = names_in();
  LeveldbReader(folder / "db").at(5);
  EXPECT_EQ(names_in(), before);
}

TEST(LevelDb, WrongInputIsRefusedAndLeavesNothing) {
  ScratchFolder folder;
  const auto message = [&](const std::string& path) {
    return error_of([&] { import_leveldb(path, folder / "lmdb", {}); });
  };
  EXPECT_EQ(message(folder / "nowhere"),
            fmt::format("{} holds no file CURRENT, so it is not a LevelDB database; if it is an LMDB, set "
                        "backend: LMDB",
                        folder / "nowhere"));
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  fs::copy(stored_leveldb("log"), folder / "none");
  write_bytes(folder / "none/000003.log", "");
  EXPECT_EQ(message(folder / "none"), fmt::format("LevelDB {} has no records", folder / "none"));
  fs::copy(stored_leveldb("tables"), folder / "damaged");
  std::string table = read_text_file(folder / "damaged/000005.ldb");
  table.replace(table.size() / 2, 6, "damage");
  write_bytes(folder / "damaged/000005.ldb", table);
  EXPECT_EQ(message(folder / "damaged"),
            fmt::format("cannot read LevelDB {}: 000005.ldb: a checksum does not fit its bytes",
                        folder / "damaged"));
  fs::remove(folder / "damaged/000005.ldb");
  EXPECT_NE(message(folder / "damaged").find("000005.sst: it cannot be opened"), std::string::npos);
  fs::copy(stored_leveldb("tables"), folder / "elsewhere");
  write_bytes(folder / "elsewhere/CURRENT", "MANIFEST-../000002\n");
  EXPECT_NE(message(folder / "elsewhere").find("CURRENT names no manifest"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "lmdb"));
}

// LevelDB leaves out a last write that a crash cut off, and so must be what reads its folders.
TEST(LevelDb, AWriteThatWasCutOffIsLeftOut) {
  ScratchFolder folder;
  fs::copy(stored_leveldb("log"), folder / "db");
  const std::string log = read_text_file(folder / "db/000003.log");
  write_bytes(folder / "db/000003.log", log.substr(0, log.size() - 3));
  LeveldbReader reader(folder / "db");
  EXPECT_EQ(reader.size(), 40) << "the deletion of number 7 came last";
}

// A record longer than a block of 32 KiB comes in fragments; one that begins a new block leaves its rest
// empty.
TEST(LevelDb, RecordsOfALogMayCrossBlocks) {
  const std::string expected[] = {std::string(32750, 'a'), std::string(70000, 'b'), "c"};
  std::string log;
  for (const std::string& record : expected) {
    for (size_t at = 0; at < record.size();) {
      constexpr size_t block = 32768, header = 7;
      if (block - log.size() % block < header) log.append(block - log.size() % block, '\0');
      const size_t room = block - log.size() % block - header;
      const size_t size = std::min(room, record.size() - at);
      const bool begins = at == 0, ends = at + size == record.size();
      const char kind = static_cast<char>(begins && ends ? 1 : begins ? 2 : ends ? 4 : 3);
      const std::string bytes = kind + record.substr(at, size);
      const uint32_t sum = crc32c(bytes), masked = (sum >> 15 | sum << 17) + 0xa282ead8u;
      for (int shift = 0; shift < 32; shift += 8) log += static_cast<char>(masked >> shift);
      log += static_cast<char>(size & 255), log += static_cast<char>(size >> 8);
      log += bytes;
      at += size;
    }
  }
  std::vector<std::string> read;
  leveldb_files::for_each_log_record(log, [&](std::string_view record) { read.emplace_back(record); });
  EXPECT_EQ(read, std::vector<std::string>(std::begin(expected), std::end(expected)));
}

TEST(LevelDb, DamageEndsInNoMoreThanAnError) {
  const std::pair<const char*, const char*> files[] = {{"tables", "000005.ldb"},
                                                       {"plain", "000007.ldb"},
                                                       {"tables", "MANIFEST-000002"},
                                                       {"log", "000003.log"},
                                                       {"log", "CURRENT"}};
  const int kinds = static_cast<int>(std::size(files));
  ScratchFolder folder;
  expect_all_survive(100 * kinds, [&](int which) {
    const auto& [name, file] = files[which % kinds];
    fs::copy(stored_leveldb(name), folder / name, fs::copy_options::overwrite_existing);
    write_bytes(folder / (std::string(name) + "/" + file),
                corrupted(read_text_file(stored_leveldb(name) + "/" + file), which, 256));
    LeveldbReader reader(folder / name);
    for (int64_t i = 0; i < reader.size(); ++i) reader.at(i);
  });
}

TEST(Snappy, IsUncompressedByItsDescription) {
  // A literal "abcd", a copy of 6 from 4 back, and one of 3 from 1 back with a two-byte offset.
  const std::string bytes{13, 3 << 2, 'a', 'b', 'c', 'd', (6 - 4) << 2 | 1, 4, (3 - 1) << 2 | 2, 1, 0};
  EXPECT_EQ(uncompressed_snappy(bytes), "abcdabcdabbbb");
  const std::string long_literal = "\x46\xF0\x45" + std::string(70, 'x');  // its length in a byte of its own
  EXPECT_EQ(uncompressed_snappy(long_literal), std::string(70, 'x'));
  EXPECT_EQ(uncompressed_snappy(std::string(1, '\0')), "");
  for (const std::string& wrong : {std::string{5, 3 << 2, 'a', 'b'}, std::string{4, 2 << 2 | 1, 4},
                                   std::string{1, 3 << 2, 'a', 'b', 'c', 'd'}, std::string{9, 0, 'a'},
                                   std::string{}, std::string("\xFF\xFF\xFF\xFF\x0F", 5)})
    EXPECT_THROW(uncompressed_snappy(wrong), UserError);
}

}  // namespace
}  // namespace cortado
