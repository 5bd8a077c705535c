// What is said where Cortado is built without LevelDB.
#include <gtest/gtest.h>

#include "cortado/data/import.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

TEST(NoLevelDb, IsRefusedAndLeavesNothing) {
  ScratchFolder folder;
  EXPECT_EQ(error_of([&] { import_leveldb("some/folder", folder / "lmdb", {}); }),
            "some/folder: this Cortado is built without LevelDB; install libleveldb-dev and build it again");
  EXPECT_FALSE(std::filesystem::exists(folder / "lmdb"));
}

}  // namespace
}  // namespace cortado
