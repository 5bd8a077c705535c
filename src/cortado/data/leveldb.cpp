#include "cortado/data/leveldb.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/file.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

// Adds database and file to what is wrong.
template <typename Read>
auto naming(const std::string& database, const std::string& file, Read&& read) {
  try {
    return read();
  } catch (const UserError& error) {
    throw UserError(fmt::format("cannot read LevelDB {}: {}: {}", database, file, error.what()));
  }
}

std::string manifest_name(const std::string& path) {
  std::error_code error;
  const fs::path current = fs::path(path) / "CURRENT";
  if (!fs::exists(current, error))
    throw UserError(fmt::format(
        "{} holds no file CURRENT, so it is not a LevelDB database; if it is an LMDB, set backend: LMDB",
        path));
  std::string name = naming(path, "CURRENT", [&] { return read_file(current.string()); });
  name.erase(name.find_last_not_of('\n') + 1);
  constexpr std::string_view start = "MANIFEST-";
  const bool fits = name.starts_with(start) && name.size() > start.size() &&
                    name.find_first_not_of("0123456789", start.size()) == std::string::npos;
  if (!fits) throw UserError(fmt::format("cannot read LevelDB {}: CURRENT names no manifest", path));
  return name;
}

// The numbers of the folder's files of the form NUMBER.log, ascending.
std::vector<uint64_t> log_numbers(const std::string& path) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data(), end, number);
    if (parsed.ec == std::errc() && std::string_view(parsed.ptr, end) == ".log") numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string table_name(const std::string& path, uint64_t number) {
  std::string name = fmt::format("{:06}.ldb", number);
  std::error_code error;
  return fs::exists(fs::path(path) / name, error) ? name : fmt::format("{:06}.sst", number);  // until 1.13
}

}  // namespace

LeveldbReader::LeveldbReader(const std::string& path) : path_(path) {
  const std::string manifest = manifest_name(path);
  const fs::path folder = path;
  const auto read = [&](const std::string& name, auto&& work) { naming(path, name, [&] { work(name); }); };
  leveldb_files::Manifest files;
  read(manifest, [&](const std::string& name) {
    files = leveldb_files::read_manifest(read_file((folder / name).string()));
  });
  for (const uint64_t number : files.tables) {
    tables_.push_back((folder / table_name(path, number)).string());
    read(table_name(path, number),
         [&](const std::string&) { read_table(static_cast<int>(tables_.size()) - 1); });
  }
  for (const uint64_t number : log_numbers(path)) {
    if (number < files.log && number != files.previous_log) continue;
    read(fmt::format("{:06}.log", number),
         [&](const std::string& name) { read_log(read_file((folder / name).string())); });
  }
  keep_last_writes();
  if (records_.empty()) throw UserError(fmt::format("LevelDB {} has no records", path));
}

void LeveldbReader::read_log(std::string_view log) {
  leveldb_files::for_each_log_record(log, [&](std::string_view batch) {
    leveldb_files::for_each_write(batch, [&](const leveldb_files::Write& write) {
      records_.push_back({.key = std::string(write.key),
                          .sequence = write.sequence,
                          .deletes = write.deletes,
                          .begin = logged_.size()});
      logged_.emplace_back(write.value);
    });
  });
}

void LeveldbReader::read_table(int table) {
  for (const leveldb_files::BlockHandle& handle : leveldb_files::data_blocks(tables_[table])) {
    const std::string block = leveldb_files::read_block(tables_[table], handle);
    leveldb_files::for_each_entry(block, [&](const std::string& key, std::string_view value) {
      const leveldb_files::Write write = leveldb_files::write_of(key, value);
      records_.push_back({.key = std::string(write.key),
                          .sequence = write.sequence,
                          .deletes = write.deletes,
                          .table = table,
                          .block = handle,
                          .begin = static_cast<uint64_t>(value.data() - block.data()),
                          .size = value.size()});
    });
  }
}

void LeveldbReader::keep_last_writes() {
  std::sort(records_.begin(), records_.end(), [](const Place& a, const Place& b) {
    const int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : a.sequence > b.sequence;
  });
  const auto last = std::unique(records_.begin(), records_.end(),
                                [](const Place& a, const Place& b) { return a.key == b.key; });
  records_.erase(last, records_.end());
  std::erase_if(records_, [](const Place& place) { return place.deletes; });
}

std::shared_ptr<const std::string> LeveldbReader::block_of(const Place& place) {
  {
    std::lock_guard lock(mutex_);
    if (last_block_ && last_table_ == place.table && last_offset_ == place.block.offset) return last_block_;
  }
  const std::string& path = tables_[place.table];
  auto block = std::make_shared<const std::string>(naming(path_, fs::path(path).filename().string(), [&] {
    return leveldb_files::read_block(path, place.block);
  }));
  std::lock_guard lock(mutex_);
  last_table_ = place.table;
  last_offset_ = place.block.offset;
  last_block_ = block;
  return block;
}

DatabaseRecord LeveldbReader::at(int64_t index) {
  ensure(index >= 0 && index < size(), "LevelDB record outside the database");
  const Place& place = records_[index];
  DatabaseRecord record{.key = place.key, .value = {}};
  if (place.table == in_log) {
    const std::string& value = logged_[place.begin];
    record.value.assign(value.begin(), value.end());
    return record;
  }
  const std::shared_ptr<const std::string> block = block_of(place);
  if (place.begin + place.size > block->size())
    throw UserError(fmt::format("cannot read LevelDB {}: it has changed since it was opened", path_));
  record.value.assign(block->begin() + static_cast<std::ptrdiff_t>(place.begin),
                      block->begin() + static_cast<std::ptrdiff_t>(place.begin + place.size));
  return record;
}

}  // namespace cortado
