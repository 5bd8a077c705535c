// Which device each rank gets, by the words of the options.
#include "cortado/exec/rank_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>

#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/device/cuda.h"

namespace cortado {
namespace {

using ::testing::HasSubstr;

std::string refusal(const DeviceWords& words) {
  try {
    devices_of(words, as_option);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(RankDevice, IsTheCpuUnlessSaidOtherwise) {
  const auto names = devices_of({}, as_option);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names.front().text(), "cpu");
  EXPECT_EQ(cpu_instead_notice({}, as_option), "");
}

TEST(RankDevice, RefusesWordsThatNameNone) {
  EXPECT_THAT(refusal({.device = "cuda"}), HasSubstr("--device cuda: give cpu, gpu, or the number of one"));
  EXPECT_THAT(refusal({.device = "cpu,cpu"}), HasSubstr("--device cpu,cpu: give cpu"));
  EXPECT_THAT(refusal({.devices = "cpu,,cpu"}), HasSubstr("--devices cpu,,cpu: give a device for each rank"));
  EXPECT_THAT(refusal({.devices = ","}), HasSubstr("--devices ,: give a device for each rank"));
  EXPECT_THAT(refusal({.gpu = ","}), HasSubstr("--gpu ,: give all, or numbers"));
  EXPECT_THAT(refusal({.gpu = "0,x"}), HasSubstr("--gpu 0,x: give all, or numbers"));
  EXPECT_THAT(refusal({.gpu = "many", .cpu_instead = true}), HasSubstr("--gpu many: give all, or numbers"));
  EXPECT_THAT(refusal({.device = "cpu", .devices = "cpu,cpu"}),
              HasSubstr("--device and --devices: give one"));
  EXPECT_THAT(refusal({.devices = "cpu", .gpu = "0"}), HasSubstr("--devices and --gpu: give one"));
}

TEST(RankDevice, RefusesGpusThatAreNotThere) {
  if (!device::gpus().empty()) GTEST_SKIP() << "there are GPUs";
  for (const DeviceWords& words : {DeviceWords{.device = "gpu"}, DeviceWords{.devices = "cpu,gpu:1"}})
    EXPECT_THAT(refusal(words), HasSubstr(device::no_gpus_because() + "; or compute on the cpu"));
  EXPECT_THAT(refusal({.gpu = "all"}), HasSubstr("--cpu-instead or set CORTADO_CPU_INSTEAD=1"));
  const DeviceWords instead{.gpu = "0,1", .cpu_instead = true};
  EXPECT_EQ(devices_of(instead, as_option).size(), 1u);
  EXPECT_THAT(cpu_instead_notice(instead, as_option), HasSubstr("--gpu 0,1: "));
  EXPECT_THAT(cpu_instead_notice(instead, as_option), HasSubstr("; the CPU computes instead"));
}

TEST(RankDevice, IsThatOfItsPlaceInTheList) {
  EXPECT_EQ((RankDevice{nullptr, {{}, {}}}).use(), "Use CPU.");
  LocalJob job(3);
  std::mutex mutex;
  job.run([&](Communicator& communicator) {
    const RankDevice mine = open_rank_device({.devices = "emulated,cpu,emulated"}, communicator, as_option);
    std::lock_guard lock(mutex);
    EXPECT_EQ(mine.runtime->host_accessible(), communicator.rank() == 1);
    EXPECT_EQ(mine.use(), "Use emulated, cpu, emulated.");
    EXPECT_FALSE(mine.all_cpu());
  });
  job.run([&](Communicator& communicator) {
    const RankDevice mine = open_rank_device({.device = "emulated"}, communicator, as_option);
    std::lock_guard lock(mutex);
    EXPECT_EQ(mine.text(), "emulated, emulated, emulated");
  });
}

TEST(RankDevice, MakesGraphsUnlessTheyAreOff) {
  EXPECT_EQ(refusal({.device = "emulated", .graph = "maybe"}), "--graph maybe: give on or off");
  const auto job = make_single_communicator();
  for (const char* word : {"", "on", "off"}) {
    const RankDevice mine = open_rank_device({.device = "emulated", .graph = word}, *job, as_option);
    EXPECT_EQ(mine.runtime->captures(), std::string(word) != "off");
    EXPECT_FALSE(open_rank_device({.graph = word}, *job, as_option).runtime->captures());
  }
}

TEST(RankDevice, RefusesAListForAnotherNumberOfRanks) {
  LocalJob job(2);
  std::mutex mutex;
  job.run([&](Communicator& communicator) {
    std::string message;
    try {
      open_rank_device({.devices = "cpu,emulated,cpu"}, communicator, as_option);
    } catch (const UserError& error) {
      message = error.what();
    }
    std::lock_guard lock(mutex);
    EXPECT_THAT(message, HasSubstr("these are 3 devices, but 2 ranks of the job run on this host"));
  });
}

}  // namespace
}  // namespace cortado
