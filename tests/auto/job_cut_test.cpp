// What kernels a job takes on a device, by the words of its options.
#include "cortado/auto/job_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/device/emulated/emulated_runtime.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/recurrent.h"
#include "cortado/layers/source.h"

#include "tests/plan/zoo.h"
#include "tests/program/nets.h"

namespace cortado {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A GPU of which nothing is there but what kernels it takes.
class Gpu : public device::DeviceRuntime {
 public:
  Gpu() : DeviceRuntime(false, device::Launches::gpu_work) {}
  device::Queue& queue() override { throw InternalError("no work is given"); }
  std::unique_ptr<device::Queue> make_queue() override { return nullptr; }
  std::unique_ptr<device::Event> make_event(bool) override { return nullptr; }

 private:
  std::byte* allocate(Bytes) override { return nullptr; }
  void free(std::byte*, Bytes) override {}
};

// A layer that no kernel of a GPU knows.
Network recurrent() {
  SourceOptions steps;
  steps.kind = SourceOptions::Kind::input;
  steps.shapes = {Shape{4, 2, 3}, Shape{4, 2}};
  return testing::built(
      {testing::declared("data", std::make_shared<Source>(steps), {}, {"data", "cont"}),
       testing::declared("memory", std::make_shared<Recurrent>(RecurrentOptions{.num_output = 3}),
                         {"data", "cont"}, {"memory"}),
       testing::declared("loss", std::make_shared<EuclideanLoss>(), {"memory", "data"}, {"loss"})});
}

class JobCutOnDevices : public ::testing::Test {
 protected:
  KernelChoice choice(const JobCut& cut) { return select_kernels(cut, net_, *alone_, {}, {}); }
  std::string refusal(const JobCut& cut) {
    try {
      choice(cut);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string refusal(const Network& net, const JobCut& cut) {
    try {
      compile(net, {.kernels = choice(cut)});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  const Network net_ = testing::zoo_net("lenet", 8, {1, 28, 28});
  const std::unique_ptr<Communicator> alone_ = make_single_communicator();
  const std::unique_ptr<device::DeviceRuntime> emulated_ = device::make_emulated();
  Gpu gpu_;
};

TEST_F(JobCutOnDevices, TakesTheListOnTheHostAndGpuKernelsElsewhere) {
  EXPECT_EQ(choice({}).kernels, "");
  EXPECT_EQ(choice({.device = emulated_.get()}).kernels, "gpu");
  EXPECT_EQ(choice({.kernels = "native", .device = emulated_.get()}).kernels, "native");
  EXPECT_EQ(choice({.device = &gpu_}).kernels, "gpu-list");
  EXPECT_EQ(choice({.fast_math = true, .device = &gpu_}).kernels, "gpu-fast-math");
  EXPECT_EQ(choice({.fast_math = true, .device = emulated_.get()}).kernels, "gpu");
  EXPECT_EQ(choice({.kernels = "gpu", .device = &gpu_}).kernels, "gpu");
  EXPECT_FALSE(choice({}).no_other || choice({.device = emulated_.get()}).no_other);
  EXPECT_TRUE(choice({.device = &gpu_}).no_other);
}

TEST_F(JobCutOnDevices, KeepsFilesOrderAndSingleLayersWhereDevicesAreMixed) {
  EXPECT_FALSE(choice({}).mixed_devices);
  const KernelChoice mixed = choice({.mixed_devices = true});
  EXPECT_TRUE(mixed.mixed_devices);
  const Compiled compiled = compile(net_, {.kernels = mixed});
  for (const ParameterFormat& format : compiled.formats) EXPECT_EQ(format, ParameterFormat{});
  for (const Work& work : compiled.program.works) EXPECT_LE(work.task.layers.size(), 1u);
  EXPECT_THAT(refusal({.kernels = "native", .mixed_devices = true}),
              HasSubstr("kernels native: where devices of several kinds share layers"));
}

TEST_F(JobCutOnDevices, RefusesOnAGpuWhatIsNotThere) {
  const JobCut cut{.device = &gpu_};
  EXPECT_EQ(refusal(net_, cut), "");
  EXPECT_EQ(refusal(net_, {.fast_math = true, .device = &gpu_}), "");
  EXPECT_EQ(refusal(net_.in(Precision::bf16), cut), "");
  EXPECT_THAT(refusal({.kernels = "native", .device = &gpu_}),
              HasSubstr("kernels native: a GPU has only those named gpu"));
  EXPECT_THAT(refusal(recurrent(), cut),
              AllOf(HasSubstr("layer 'memory'"), HasSubstr("no gpu kernels for layers of type LSTM")));
  LocalJob(2).run([&](Communicator& job) {
    EXPECT_NO_THROW(strategy_of({.strategy = "data", .device = &gpu_}, net_, job, 1, {}));
  });
}

// Beside the emulated device, which stands for it, a layer that a GPU does not know is the processor's.
TEST_F(JobCutOnDevices, LetsTheProcessorsKernelsRunOnTheEmulatedDevice) {
  EXPECT_EQ(refusal(recurrent(), {.device = emulated_.get()}), "");
}

TEST_F(JobCutOnDevices, RefusesLimitsOfMemoryBesideReproducible) {
  const auto refused = [&](JobCut cut) {
    cut.strategy = "single";
    cut.schedule.memory_limit = "1GiB";
    try {
      strategy_of(cut, net_, *alone_, 1, {});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused({.reproducible = true}), HasSubstr("memory-limit: beside reproducible"));
  EXPECT_EQ(refused({.device = emulated_.get()}), "");
}

}  // namespace
}  // namespace cortado
