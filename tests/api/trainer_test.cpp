#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <numeric>
#include <stdlib.h>
#include <thread>

#include "tests/api/nets.h"
#include "tests/base/scratch_folder.h"

namespace cortado::api {
namespace {

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    std::string path = (std::filesystem::temp_directory_path() / "cortado_api_XXXXXX").string();
    folder_ = mkdtemp(path.data());
  }
  ~TrainerTest() override { std::filesystem::remove_all(folder_); }
  std::string prefix(const std::string& name = "net") const { return folder_ / name; }
  Data bars() const { return Data().fill("data", fill_bars); }
  Trainer trainer(const TrainerOptions& options = {}) const {
    return Trainer(small_solver(prefix()), bars(), options);
  }

  std::filesystem::path folder_;
};

std::vector<float> all_parameters(const Trainer& trainer) {
  std::vector<float> all;
  for (const NamedShape& parameter : trainer.network().parameters()) {
    const Tensor tensor = trainer.parameter(parameter.name);
    all.insert(all.end(), tensor.values.begin(), tensor.values.end());
  }
  return all;
}

class Losses : public Observer {
 public:
  void iteration(const Iteration& iteration) override { of.push_back(iteration.loss); }
  void test(const TestResult&) override { ++tests; }
  std::vector<double> of;
  int tests = 0;
};

TEST_F(TrainerTest, LearnsFromDataOfACallback) {
  Trainer trainer = this->trainer();
  EXPECT_TRUE(std::isnan(trainer.loss()));
  Losses losses;
  trainer.observe(losses);
  EXPECT_TRUE(trainer.step());
  const double first = trainer.loss();
  EXPECT_NEAR(first, std::log(4), 0.7);
  EXPECT_TRUE(trainer.step(59));
  EXPECT_EQ(trainer.iteration(), 60);
  EXPECT_LT(trainer.loss(), first / 4);
  ASSERT_EQ(losses.of.size(), 60u);
  EXPECT_EQ(losses.of.front(), first);
  EXPECT_EQ(losses.of.back(), trainer.loss());
  const std::vector<TestResult> tests = trainer.test();
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(losses.tests, 1);
  ASSERT_EQ(tests[0].outputs.size(), 2u);
  EXPECT_EQ(tests[0].outputs[0].name, "accuracy");
  EXPECT_GT(tests[0].outputs[0].value, 0.9);
}

// The solver's precision goes before that of the network, and either is that of all nets.
TEST_F(TrainerTest, LearnsInBf16) {
  const auto loss = [&](Precision of_network, std::optional<Precision> of_solver) {
    const Network net = Network::from_text(small_lenet(), {.precision = of_network});
    Solver solver({.type = "Adam", .base_lr = 0.005, .momentum = 0.9, .test_iter = 4}, net);
    if (of_solver) solver.set(Solver::Overrides{.precision = of_solver});
    Trainer trainer(solver, bars());
    trainer.step(60);
    EXPECT_GT(trainer.test()[0].outputs[0].value, 0.9);
    return trainer.loss();
  };
  const double f32 = loss(Precision::f32, {}), bf16 = loss(Precision::bf16, {});
  EXPECT_EQ(loss(Precision::bf16, Precision::f32), f32);
  EXPECT_EQ(loss(Precision::f32, Precision::bf16), bf16);
  EXPECT_NE(bf16, f32);
  EXPECT_NEAR(bf16, f32, 0.1);
}

TEST_F(TrainerTest, ReadsTensorsInSpokenOrder) {
  Trainer trainer = this->trainer({.keep_tensors = true});
  trainer.step();
  const Tensor data = trainer.tensor("data");
  EXPECT_EQ(data.shape, (Shape{16, 1, 12, 12}));
  std::vector<float> images(data.values.size()), labels(16);
  BatchRequest batch{.layer = "data",
                     .phase = Phase::train,
                     .number = 0,
                     .batch = 16,
                     .begin = 0,
                     .end = 16,
                     .tops = {{"data", {16, 1, 12, 12}, images}, {"label", {16}, labels}}};
  fill_bars(batch);
  EXPECT_EQ(data.values, images);

  // A 3x3 convolution by hand, with the parameters as they were before the update.
  Trainer fresh = this->trainer();
  const Tensor weight = fresh.parameter("conv1/weight"), conv = trainer.tensor("conv1");
  EXPECT_EQ(weight.shape, (Shape{6, 1, 3, 3}));
  ASSERT_EQ(conv.shape, (Shape{16, 6, 10, 10}));
  const auto at = [&](int64_t n, int64_t h, int64_t w) {
    return data.values[static_cast<size_t>((n * 12 + h) * 12 + w)];
  };
  for (const auto& [n, c, h, w] : {std::array<int64_t, 4>{3, 5, 2, 7}, {15, 0, 9, 9}, {0, 2, 0, 1}}) {
    double sum = 0;
    for (int64_t y = 0; y < 3; ++y)
      for (int64_t x = 0; x < 3; ++x)
        sum += weight.values[static_cast<size_t>((c * 3 + y) * 3 + x)] * at(n, h + y, w + x);
    EXPECT_NEAR(conv.values[static_cast<size_t>(((n * 6 + c) * 10 + h) * 10 + w)], sum, 1e-5);
  }
  EXPECT_EQ(trainer.network().tensor("conv1"), conv.shape);
  EXPECT_EQ(trainer.gradient("ip2").shape, (Shape{16, 4}));

  fresh.step();
  EXPECT_NE(error_of([&] { fresh.tensor("conv1"); }).find("keep_tensors"), std::string::npos);
  EXPECT_NE(error_of([&] { fresh.gradient("ip2"); }).find("keep_tensors"), std::string::npos);
  EXPECT_EQ(error_of([&] { fresh.tensor("conv9"); }),
            "net 'small-lenet' has no tensor 'conv9'; did you mean 'conv1'?");
  EXPECT_EQ(fresh.tensor("loss").values, std::vector<float>{static_cast<float>(fresh.loss())});
}

TEST_F(TrainerTest, SetsParameters) {
  Trainer trainer = this->trainer();
  std::vector<float> bias(6);
  std::iota(bias.begin(), bias.end(), 1.F);
  trainer.set_parameter("conv1/bias", bias);
  EXPECT_EQ(trainer.parameter("conv1/bias").values, bias);
  EXPECT_EQ(error_of([&] { trainer.set_parameter("conv1/bias", {1}); }),
            "net 'small-lenet': parameter 'conv1/bias' has 6 values; given 1");
  EXPECT_NE(error_of([&] { trainer.parameter("conv1/bios"); }).find("'conv1/bias'"), std::string::npos);
}

TEST_F(TrainerTest, GoesOnFromASnapshotBitForBit) {
  Trainer whole = trainer();
  whole.step(9);
  std::string file;
  {
    Trainer first = trainer();
    first.step(5);
    file = first.snapshot(prefix("kept"));
    EXPECT_EQ(file, prefix("kept_iter_5.safetensors"));
  }
  Trainer second = trainer();
  EXPECT_EQ(second.restore(file).path, file);
  EXPECT_EQ(second.iteration(), 5);
  second.step(4);
  EXPECT_EQ(all_parameters(second), all_parameters(whole));
  EXPECT_EQ(second.loss(), whole.loss());
  Trainer third = trainer();
  EXPECT_TRUE(third.load_weights(file).of_network.empty());
  EXPECT_NE(all_parameters(third), all_parameters(trainer()));
}

TEST_F(TrainerTest, RunsToTheEndOrUntilAskedToStop) {
  class Stopper : public Observer {
   public:
    void iteration(const Iteration& iteration) override {
      if (iteration.number == 6) token.request_stop();
    }
    StopToken token;
  } stopper;
  Trainer trainer = this->trainer();
  trainer.observe(stopper);
  EXPECT_FALSE(trainer.run(stopper.token));
  EXPECT_EQ(trainer.iteration(), 7);
  EXPECT_TRUE(std::filesystem::exists(prefix("net_iter_7.safetensors")));
  stopper.token.reset();
  EXPECT_TRUE(trainer.run(stopper.token));
  EXPECT_EQ(trainer.iteration(), 40);
}

// No globals: what one trainer does is nothing to the other, in turns or at the same time.
TEST_F(TrainerTest, TwoInOneProcessAreAsEachAlone) {
  const auto small = [&] { return Trainer(small_solver(prefix("small")), bars(), {.threads = 1}); };
  const auto other = [&] {
    Solver solver = small_solver(prefix("other"));
    solver.set("random_seed", "7").set("type", "SGD").set("base_lr", "0.05");
    return Trainer(solver, bars(), {.threads = 2});
  };
  Trainer small_alone = small();
  small_alone.step(10);
  const std::vector<float> of_small = all_parameters(small_alone);
  Trainer other_alone = other();
  other_alone.step(10);
  const std::vector<float> of_other = all_parameters(other_alone);
  ASSERT_NE(of_small, of_other);
  {
    Trainer a = small(), b = other();
    for (int i = 0; i < 10; ++i) a.step(), b.step(), a.test();
    EXPECT_EQ(all_parameters(a), of_small);
    EXPECT_EQ(all_parameters(b), of_other);
  }
  Trainer a = small(), b = other();
  std::thread beside([&] { a.step(10); });
  b.step(10);
  beside.join();
  EXPECT_EQ(all_parameters(a), of_small);
  EXPECT_EQ(all_parameters(b), of_other);
}

TEST_F(TrainerTest, ReadsSpans) {
  std::vector<float> images(48 * 144), labels(48);
  BatchRequest all{.layer = "data",
                   .phase = Phase::train,
                   .number = 0,
                   .batch = 48,
                   .begin = 0,
                   .end = 48,
                   .tops = {{"data", {48, 1, 12, 12}, images}, {"label", {48}, labels}}};
  fill_bars(all);
  Data data;
  data.spans("data", {images, labels}, {{1, 12, 12}, {}});
  Trainer by_span(small_solver(prefix()), data), by_call = trainer();
  by_span.step(3);
  by_call.step(3);
  EXPECT_EQ(all_parameters(by_span), all_parameters(by_call));
  by_span.step();  // begins again
  by_call.step();
  EXPECT_NE(all_parameters(by_span), all_parameters(by_call));
  images.pop_back();
  EXPECT_EQ(error_of([&] {
              data.spans("data", {images, labels}, {{1, 12, 12}, {}});
            }),
            "data of layer 'data': top 0 has 6911 values; give whole samples of 144 values, as many as the "
            "first top");
}

// Ranks see the samples of one, each its own; the losses are the same but for the order of sums.
TEST_F(TrainerTest, RanksHaveTheLossesOfOne) {
  Losses alone;
  {
    Trainer trainer = this->trainer({.threads = 1});
    trainer.observe(alone);
    trainer.step(8);
  }
  for (const char* strategy : {"data", "model", "spatial"}) {
    Job::local(2, [&](Job& job) {
      Losses mine;
      Trainer trainer = this->trainer({.job = job, .strategy = strategy, .threads = 1, .keep_tensors = true});
      trainer.observe(mine);
      trainer.step(8);
      ASSERT_EQ(mine.of.size(), 8u);
      for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(mine.of[i], alone.of[i], 1e-4 * alone.of[0]) << strategy;
      EXPECT_EQ(trainer.tensor("conv1").shape, (Shape{16, 6, 10, 10}));
      EXPECT_EQ(trainer.parameter("ip1/weight").values.size(), 16u * 150u);
    });
  }
}

// The emulated device runs the kernels of a GPU; the other rank computes on the processor.
TEST_F(TrainerTest, RanksOfOtherDevicesHaveTheLossesOfOne) {
  Losses alone;
  {
    Trainer trainer = this->trainer({.threads = 1});
    trainer.observe(alone);
    trainer.step(4);
  }
  Job::local(2, [&](Job& job) {
    Losses mine;
    Trainer trainer = this->trainer({.job = job,
                                     .strategy = "data",
                                     .threads = 1,
                                     .device = job.rank() == 0 ? "emulated" : "cpu",
                                     .keep_tensors = true});
    trainer.observe(mine);
    trainer.step(4);
    ASSERT_EQ(mine.of.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(mine.of[i], alone.of[i], 1e-4 * alone.of[0]);
    EXPECT_EQ(trainer.tensor("conv1").shape, (Shape{16, 6, 10, 10}));
    EXPECT_EQ(trainer.parameter("ip1/weight").values.size(), 16u * 150u);
  });
}

TEST_F(TrainerTest, PassesOnWhatACallbackThrows) {
  struct Mine {};
  Data data;
  data.fill("data", [](BatchRequest& batch) {
    if (batch.number == 2) throw Mine();
    fill_bars(batch);
  });
  Trainer trainer(small_solver(prefix()), data);
  trainer.step(2);
  EXPECT_THROW(trainer.step(), Mine);
}

TEST_F(TrainerTest, RefusesWhatCannotBe) {
  const auto complaint = [&](const Solver& solver, const Data& data, const TrainerOptions& options = {}) {
    return error_of([&] { Trainer trainer(solver, data, options); });
  };
  EXPECT_EQ(complaint(small_solver(prefix()), Data().fill("dat", fill_bars)),
            "data of layer 'dat': no net has a source layer of that name (there are: data)");
  Solver solver = small_solver(prefix());
  EXPECT_NE(error_of([&] { solver.set("base_lt", "1"); }).find("'base_lr'"), std::string::npos);
  EXPECT_NE(complaint(small_solver(prefix()).set("lr_policy", "fixd"), bars())
                .find("solver: lr_policy: 'fixd' is unknown"),
            std::string::npos);
  EXPECT_EQ(complaint(small_solver(prefix()), bars(), {.device = "emulated", .open_nets = true}),
            "open_nets: values are open on the CPU alone, not on device emulated");
  EXPECT_EQ(complaint(small_solver(prefix()).set(Solver::Overrides{.precision = Precision::bf16}), bars(),
                      {.open_nets = true}),
            "blob 'conv1' is bf16; values are open in f32 alone: leave the precision at f32");
  EXPECT_TRUE(complaint(small_solver(prefix()), bars(), {.device = "gqu"}).starts_with("device gqu"));
  EXPECT_NO_THROW(check_device("cpu"));
  EXPECT_NE(complaint(small_solver(prefix()), bars(), {.kernels = "slow"}).find("slow"), std::string::npos);
  EXPECT_TRUE(complaint(small_solver(prefix()), bars(), {.kernels = "onednn", .fast_math = true})
                  .starts_with("fast_math: allows more kernels, and kernels onednn allows fewer"));
  EXPECT_TRUE(
      complaint(small_solver(prefix()), bars(), {.fast_math = true, .reproducible = true})
          .starts_with("reproducible: the net alone says which kernels run, so fast_math has no say"));
  const auto scheduled = [&](const Schedule& schedule) {
    return complaint(small_solver(prefix()), bars(), {.strategy = Strategy("data").with(schedule)});
  };
  EXPECT_TRUE(scheduled({.gradient_chunks = "some"}).starts_with("gradient_chunks: 'some'"));
  EXPECT_TRUE(scheduled({.replicate = {"cnov"}}).starts_with("replicate: 'cnov' fits no layer"));
  EXPECT_EQ(error_of([] { Network::from_text("layer { name: \"a\" typ: \"ReLU\" }"); }),
            "net:1:22: LayerParameter has no field 'typ'; did you mean 'type'?");
}

// A Data layer without its database takes its samples' shapes from the caller.
TEST_F(TrainerTest, FeedsALayerWhoseDataAreNotAtHand) {
  std::string net = small_lenet();
  const std::string input = R"(type: "Input" top: "data" top: "label"
  input_param { shape { dim: 16 dim: 1 dim: 12 dim: 12 } shape { dim: 16 } })";
  net.replace(net.find(input), input.size(),
              R"(type: "Data" top: "data" top: "label" data_param { source: "none" batch_size: 16 })");
  Data data;
  data.fill("data", fill_bars, {{1, 12, 12}, {}});
  Trainer trainer(small_solver(prefix(), net), data), declared = this->trainer();
  trainer.step(2);
  declared.step(2);
  EXPECT_EQ(all_parameters(trainer), all_parameters(declared));
  EXPECT_NE(error_of([&] { Trainer(small_solver(prefix(), net), bars()); }).find("give one for each"),
            std::string::npos);
}

}  // namespace
}  // namespace cortado::api
