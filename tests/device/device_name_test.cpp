// Names of devices, and what opens by them.
#include "cortado/device/device_name.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/device/cuda.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/open_device.h"

namespace cortado::device {
namespace {

TEST(DeviceName, ReadsWhatItWrites) {
  for (const char* text : {"cpu", "gpu", "gpu:0", "gpu:12", "emulated"}) {
    const auto name = device_named(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(name->text(), text);
  }
  EXPECT_EQ(device_named("gpu:12")->number, 12);
  EXPECT_EQ(device_named("gpu")->kind, DeviceName::Kind::gpu);
}

TEST(DeviceName, RefusesOtherWords) {
  for (const char* text : {"", "CPU", "gpu:", "gpu:-1", "gpu:+1", "gpu:1x", "gpu:99999999999", "gpu0",
                           "cpu:0", "emulated:1", "gpu :0"})
    EXPECT_FALSE(device_named(text)) << text;
}

TEST(OpenDevice, OpensTheHostAndEmulatedOnes) {
  EXPECT_EQ(open_device({}).get(), &host());
  const auto one = open_device(*device_named("emulated")), other = open_device(*device_named("emulated"));
  EXPECT_FALSE(one->host_accessible());
  EXPECT_NE(one.get(), other.get());
}

TEST(OpenDevice, SaysWhyThereIsNoGpu) {
  EXPECT_EQ(gpus().empty(), !no_gpus_because().empty());
  if (gpus().empty()) {
    EXPECT_THROW(open_device(*device_named("gpu:0")), UserError);
  }
  EXPECT_EQ(text({"Card X", {int64_t{3} << 29}, 9, 1}), "Card X, compute capability 9.1, 1.5 GiB");
}

}  // namespace
}  // namespace cortado::device
