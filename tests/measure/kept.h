#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

#include "cortado/base/compute_threads.h"
#include "cortado/base/file.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/problem.h"
#include "cortado/measure/job_machine.h"
#include "cortado/measure/job_times.h"

#include "tests/base/scratch_folder.h"
#include "tests/comm/forwarding_communicator.h"

namespace cortado::testing {

// A convolution of so many filters on two samples of 16 channels, on one device or shared by several.
inline Task small_convolution(int64_t filters = 8, bool cut = false) {
  ConvolutionOptions options{.num_output = filters, .kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}};
  Task task =
      whole_task(std::make_shared<Convolution>(options), Phase::train, std::vector<Shape>{{2, 16, 8, 8}}, 1);
  task.cut = cut;
  return task;
}

// A time of its own for each text: seconds that no machine takes, so that they are not taken for measured
// ones.
inline TaskTime made_up(const std::string& what) {
  const auto digit = static_cast<double>(std::hash<std::string>()(what) % 1009);
  return {.forward = {1000 + digit}, .backward_weights = {2000 + digit}, .backward = {3000 + digit}};
}

// A job whose ranks seem to compute at one rate, whatever else runs beside the test: so a kept machine is
// never found changed.
class EquallyFastRanks : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  std::vector<std::vector<std::byte>> all_to_all_bytes(std::span<const std::byte> mine) override {
    auto all = ForwardingCommunicator::all_to_all_bytes(mine);
    for (auto& bytes : all) {
      if (bytes.size() == sizeof(double)) bytes = all.front();
      if (bytes.size() == sizeof(RankFacts)) set_rate(bytes);
    }
    return all;
  }

 private:
  static void set_rate(std::vector<std::byte>& bytes) {
    RankFacts facts;
    std::memcpy(&facts, bytes.data(), sizeof facts);
    facts.sustained = facts.peak = 1e10;
    std::memcpy(bytes.data(), &facts, sizeof facts);
  }
};

// A cache of its own, which has already the machine of a job of so many ranks: that is measured once a
// process.
class KeptCache : public ::testing::Test {
 protected:
  explicit KeptCache(int ranks = 1) {
    set_compute_threads(1);
    std::filesystem::copy(measured(ranks), folder());
    setenv("CORTADO_CACHE", folder().c_str(), 1);
  }
  ~KeptCache() override { unsetenv("CORTADO_CACHE"); }

  std::string folder() const { return folder_.file("cache"); }
  // The file whose name begins so: "machine-" or "tasks-".
  std::string kept_file(const std::string& prefix) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().filename().string().starts_with(prefix)) return entry.path();
    throw InternalError("there is no kept file " + prefix);
  }
  void overwrite(const std::string& prefix, const std::string& content) const {
    std::ofstream(kept_file(prefix), std::ios::trunc) << content;
  }
  using Json = nlohmann::ordered_json;
  void edit(const std::string& prefix, const std::function<void(Json&)>& change) const {
    Json json = Json::parse(read_file(kept_file(prefix)));
    change(json);
    overwrite(prefix, json.dump(1));
  }

  std::string told_;
  const Notices tell_ = [this](const std::string& line) { told_ += line + "\n"; };

 private:
  static std::string measured(int ranks) {
    static std::map<int, ScratchFolder> folders;
    const auto [found, fresh] = folders.try_emplace(ranks);
    const std::string folder = found->second.file("cache");
    if (!fresh) return folder;
    setenv("CORTADO_CACHE", folder.c_str(), 1);
    LocalJob(ranks).run([](Communicator& threads) {
      EquallyFastRanks job(threads);
      JobTimes(job).save();
    });
    return folder;
  }

  ScratchFolder folder_;
};

}  // namespace cortado::testing
