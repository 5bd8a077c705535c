#include "cortado/measure/cache.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

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

TEST_F(Cache, KeepsNothingWithoutAFolder) {
  const std::string home = std::getenv("HOME") ? std::getenv("HOME") : "";
  for (const char* name : {"CORTADO_CACHE", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
  EXPECT_EQ(cache_folder(), "");
  write_cached("a.json", "text", tell_);
  EXPECT_EQ(read_cached("a.json", tell_), std::nullopt);
  EXPECT_EQ(told_, "");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(cache_folder(), "/h/.cache/cortado");
  setenv("HOME", home.c_str(), 1);
}

// Several programs write a file at the same time: whoever reads finds one of their texts, whole.
TEST_F(Cache, IsNeverReadHalfWritten) {
  constexpr int writers = 3, times = 60;
  const auto text_of = [](int writer) {
    return std::string(static_cast<size_t>(1000 + 70'000 * writer), static_cast<char>('a' + writer));
  };
  write_cached("a.json", text_of(0), nullptr);
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer)
    threads.emplace_back([&, writer] {
      for (int i = 0; i < times; ++i) write_cached("a.json", text_of(writer), nullptr);
    });
  for (int i = 0; i < times; ++i) {
    const std::string read = read_cached("a.json", tell_).value_or("nothing");
    EXPECT_EQ(read, text_of(read[0] - 'a')) << read.size();
    if (HasFailure()) break;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(told_, "");
  const std::filesystem::directory_iterator left(cache_folder());
  EXPECT_EQ(std::distance(begin(left), end(left)), 1);  // no drafts
}

}  // namespace
}  // namespace cortado
