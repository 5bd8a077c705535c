#include "cortado/measure/cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/base/scratch_folder.h"

namespace cortado {
namespace {

class Cache : public ::testing::Test {
 protected:
  Cache() { setenv("CORTADO_CACHE", folder_.file("kept").c_str(), 1); }
  ~Cache() override {
    for (const char* name : {"CORTADO_CACHE", "XDG_CACHE_HOME"}) unsetenv(name);
  }
  ScratchFolder folder_;
  std::string told_;
  const Notices tell_ = [this](const std::string& line) { told_ += line; };
};

TEST_F(Cache, LiesWhereTheEnvironmentSays) {
  EXPECT_EQ(cache_folder(), folder_.file("kept"));
  unsetenv("CORTADO_CACHE");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(cache_folder(), "/x/cortado");
  setenv("XDG_CACHE_HOME", "relative", 1);  // does not count
  EXPECT_NE(cache_folder(), "relative/cortado");
}

TEST_F(Cache, GivesBackWhatWasWritten) {
  EXPECT_EQ(read_cached("a.json", tell_), std::nullopt);
  write_cached("a.json", "text", tell_);
  EXPECT_EQ(read_cached("a.json", tell_), "text");
  EXPECT_EQ(told_, "");
}

// Whatever is wrong with the folder costs time, never the work.
TEST_F(Cache, TellsWhatGoesWrongAndGoesOn) {
  std::ofstream(folder_.file("kept")) << "a file in place of the folder";
  write_cached("a.json", "text", tell_);
  EXPECT_NE(told_.find("measurements are not kept: "), std::string::npos) << told_;
  EXPECT_EQ(read_cached("a.json", tell_), std::nullopt);
  write_cached("a.json", "text", nullptr);  // nobody listens
  std::filesystem::remove(folder_.file("kept"));
  std::filesystem::create_directories(folder_.file("kept/b.json"));
  told_.clear();
  EXPECT_EQ(read_cached("b.json", tell_), std::nullopt);
  EXPECT_NE(told_.find("b.json"), std::string::npos) << told_;
}

}  // namespace
}  // namespace cortado
