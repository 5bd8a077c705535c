#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cortado/device/cuda.h"

#include "tests/app/run_command.h"

namespace cortado {
namespace {

using testing::HasSubstr;

// What scripts that were written for `caffe` ask for, and what they cannot ask of Caffe.
class CaffeUsers : public testing::Test {
 protected:
  void SetUp() override {
    folder_.write("net.prototxt", small_net());
    folder_.write("solver.prototxt", small_solver());
  }
  CommandResult cortado(const std::string& arguments, const std::string& prelude = "") {
    return run_cortado(folder_.path(), arguments, prelude);
  }
  // A net on two databases of 3x32x32 images that are not where the file says.
  void write_net_on_databases() {
    ASSERT_EQ(cortado("data generate one --samples 40 --classes 3").exit_code, 0);
    ASSERT_EQ(cortado("data generate two --samples 40 --classes 3 --seed 7").exit_code, 0);
    std::string net = small_net();
    const size_t begin = net.find("layer { name: \"data\""), end = net.find("layer { name: \"conv\"");
    net.replace(begin, end - begin,
                database("TRAIN", "none/train_lmdb") + database("TEST", "none/test_lmdb"));
    folder_.write("net.prototxt", net);
    folder_.write("solver.prototxt", small_solver("test_iter: 2 test_interval: 10"));
  }
  static std::string database(const std::string& phase, const std::string& source) {
    return "layer { name: \"data\" type: \"Data\" top: \"data\" top: \"label\" include { phase: " + phase +
           " }\n  data_param { source: \"" + source + "\" batch_size: 8 backend: LMDB } }\n";
  }
  TemporaryFolder folder_;
};

TEST_F(CaffeUsers, GetTheCpuInPlaceOfAGpuWhereTheySaySo) {
  if (!device::gpus().empty()) GTEST_SKIP() << "there are GPUs";
  const std::string train = "train -solver solver.prototxt -threads 1 --set max_iter=1 ";
  for (const std::string gpu : {"0", "all", "0,1"}) {
    const CommandResult refused = cortado(train + "-gpu " + gpu);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.output, HasSubstr("--gpu " + gpu + ": " + device::no_gpus_because()));
    EXPECT_THAT(refused.output, HasSubstr("give --cpu-instead or set CORTADO_CPU_INSTEAD=1"));
    for (const auto& [option, variable] :
         {std::pair(" --cpu-instead", ""), std::pair("", "export CORTADO_CPU_INSTEAD=1;")}) {
      const CommandResult taken = cortado(train + "-gpu " + gpu + option, variable);
      EXPECT_EQ(taken.exit_code, 0) << taken.output;
      EXPECT_THAT(taken.output, HasSubstr("the CPU computes instead\n"));
      EXPECT_THAT(taken.output, HasSubstr("Optimization Done."));
    }
  }
  EXPECT_EQ(cortado(train + "-gpu 0", "export CORTADO_CPU_INSTEAD=0;").exit_code, 2);
  EXPECT_THAT(cortado(train + "-gpu many --cpu-instead").output,
              HasSubstr("--gpu many: give all, or numbers"));
}

TEST_F(CaffeUsers, QueryDevices) {
  const CommandResult told = cortado("device_query");
  EXPECT_EQ(told.exit_code, 0);
  const std::string no_gpus = device::no_gpus_because();
  EXPECT_THAT(told.output, HasSubstr(no_gpus.empty() ? "gpu:0: " : "none: " + no_gpus));
  // `-march=native` builds of these tests run where these are.
#if defined(__AVX2__)
  EXPECT_THAT(told.output, HasSubstr(" avx2"));
#endif
  EXPECT_THAT(told.output, testing::ContainsRegex("threads: +[0-9]+, [0-9]+, [0-9]+\n"));
  EXPECT_THAT(told.output, HasSubstr("L1 "));
  EXPECT_EQ(cortado("device_query -gpu 0").exit_code, no_gpus.empty() ? 0 : 2);
  EXPECT_EQ(cortado("device-query -gpu all --cpu-instead").exit_code, 0);
}

TEST_F(CaffeUsers, GiveOtherDataAndBatchSizes) {
  write_net_on_databases();
  const std::string train = "train -solver solver.prototxt -threads 1 --snapshot-format cortado ";
  EXPECT_THAT(cortado(train).output, HasSubstr("none/train_lmdb does not exist"));
  EXPECT_THAT(cortado(train + "--source one").output, HasSubstr("none/test_lmdb does not exist"));
  const CommandResult trained =
      cortado(train + "--source one --test-source data=two --batch 4 --test-batch 5");
  EXPECT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("solver SGD, batch 4\n"));

  const std::string test =
      "test -model net.prototxt -weights small_iter_20.safetensors -iterations 8 --json ";
  ASSERT_EQ(cortado(test + "two.json --source two --batch 5").exit_code, 0);
  ASSERT_EQ(cortado(test + "one.json --source one --batch 5").exit_code, 0);
  auto losses = [&](const char* name) {
    return nlohmann::json::parse(folder_.read(name))["loss"].get<double>();
  };
  EXPECT_NE(losses("one.json"), losses("two.json"));
  // The same data where the file says, and batches of another size, give the same mean.
  std::string net = folder_.read("net.prototxt");
  net.replace(net.find("none/test_lmdb"), 14, "two");
  folder_.write("net.prototxt", net);
  ASSERT_EQ(
      cortado("test -model net.prototxt -weights small_iter_20.safetensors -iterations 5 --json file.json")
          .exit_code,
      0);
  EXPECT_NEAR(losses("file.json"), losses("two.json"), 1e-6);
  EXPECT_EQ(cortado("time -model net.prototxt -iterations 1 --source one").exit_code, 0);
}

TEST_F(CaffeUsers, AreToldWhichSourcesThereAre) {
  const std::string show = "show --model net.prototxt ";
  EXPECT_THAT(cortado(show + "--source x").output,
              HasSubstr("error: source x: net net.prototxt has no layer with a source"));
  folder_.write(
      "net.prototxt", database("TEST", "a") + [] {
        std::string other = database("TEST", "b");
        return other.replace(other.find("\"data\""), 6, "\"more\"");
      }());
  EXPECT_THAT(cortado(show + "--source x").output,
              HasSubstr("error: source x: net net.prototxt has the sources data, more; give LAYER=PATH"));
  EXPECT_THAT(cortado(show + "--source dat=x").output,
              HasSubstr("error: source dat=x: net net.prototxt has no source 'dat' (there are: data, more)"));
  EXPECT_THAT(cortado(show + "--source data=").output,
              HasSubstr("error: source data=: give a path, or LAYER=PATH"));
  EXPECT_THAT(cortado("train --solver solver.prototxt --test-source x").output,
              HasSubstr("solver.prototxt: there is no test net; leave out the source of tests"));
}

}  // namespace
}  // namespace cortado
