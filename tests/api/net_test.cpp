#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <numeric>

#include "tests/api/nets.h"
#include "tests/base/scratch_folder.h"

namespace cortado::api {
namespace {

Net small_net(Phase phase = Phase::train, const NetOptions& options = {}) {
  return Net(Network::from_text(small_lenet(), {.phase = phase}), {}, options);
}

std::vector<float> wave(size_t count, double step) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(step * static_cast<double>(i)));
  return values;
}

std::vector<float> some_labels() {
  std::vector<float> labels(16);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<float>(i % 4);
  return labels;
}

void give_samples(Net& net) {
  net.set_values("data", wave(16 * 144, 0.37));
  net.set_values("label", some_labels());
}

double dot(const std::vector<float>& one, const std::vector<float>& other) {
  return std::inner_product(one.begin(), one.end(), other.begin(), 0.0);
}

// The derivative of `value` by element `at` of what `set` writes.
double difference(std::vector<float> values, size_t at,
                  const std::function<void(const std::vector<float>&)>& set,
                  const std::function<double()>& value) {
  constexpr float step = 2e-3F;
  const float middle = values[at];
  values[at] = middle + step;
  set(values);
  const double after = value();
  values[at] = middle - step;
  set(values);
  const double before = value();
  values[at] = middle;
  set(values);
  return (after - before) / (2 * static_cast<double>(step));
}

TEST(Net, NamesItsBlobs) {
  const Net net = small_net();
  EXPECT_EQ(net.blobs(), (std::vector<std::string>{"data", "label", "conv1", "pool1", "ip1", "ip2", "loss"}));
  EXPECT_EQ(net.inputs(), (std::vector<std::string>{"data", "label"}));
  EXPECT_EQ(net.outputs(), std::vector<std::string>{"loss"});
  EXPECT_EQ(net.shape("conv1"), (Shape{16, 6, 10, 10}));
  EXPECT_EQ(net.values("conv1").values, std::vector<float>(16 * 6 * 100));
  EXPECT_THROW(net.shape("conv"), UserError);
  EXPECT_THROW(small_net().forward("conv"), UserError);
}

TEST(Net, GradientsAreFiniteDifferences) {
  Net net = small_net();
  give_samples(net);
  const auto loss = [&] { return net.forward(); };
  loss();
  net.backward();
  for (const char* name : {"conv1/weight", "ip1/weight", "ip2/bias"}) {
    const std::vector<float> gradient = net.parameter_gradient(name).values;
    const std::vector<float> values = net.parameter(name).values;
    for (size_t at = 0; at < values.size(); at += values.size() / 3) {
      const double expected = difference(
          values, at, [&](const auto& v) { net.set_parameter(name, v); }, loss);
      EXPECT_NEAR(gradient[at], expected, 2e-3) << name << " " << at;
    }
  }
}

TEST(Net, ComputesTheSameInParts) {
  Net whole = small_net(), parts = small_net();
  for (Net* net : {&whole, &parts}) give_samples(*net);
  const double loss = whole.forward();
  whole.backward();
  EXPECT_EQ(parts.forward("data", "pool1"), 0);
  EXPECT_EQ(parts.values("ip2").values, std::vector<float>(16 * 4));
  EXPECT_EQ(parts.forward("ip1", "loss"), loss);
  parts.backward("loss", "relu1");
  parts.backward("ip1", "data");
  for (const std::string& blob : whole.blobs()) {
    EXPECT_EQ(whole.values(blob).values, parts.values(blob).values) << blob;
    EXPECT_EQ(whole.gradient(blob).values, parts.gradient(blob).values) << blob;
  }
  EXPECT_EQ(whole.parameter_gradient("conv1/weight").values, parts.parameter_gradient("conv1/weight").values);
}

TEST(Net, GoesOnFromWhatWasWritten) {
  Net net = small_net();
  give_samples(net);
  net.forward();
  const std::vector<float> written = wave(16 * 16, 0.9);
  net.set_values("ip1", written);
  net.forward("ip2", "ip2");
  const std::vector<float> weight = net.parameter("ip2/weight").values, out = net.values("ip2").values;
  for (size_t sample = 0; sample < 16; ++sample) {
    for (size_t of = 0; of < 4; ++of) {
      double sum = 0;
      for (size_t i = 0; i < 16; ++i)
        sum += static_cast<double>(weight[of * 16 + i]) * written[sample * 16 + i];
      EXPECT_NEAR(out[sample * 4 + of], sum, 1e-5);
    }
  }
}

// The blob "ip1" is that of the layer that ran last: before or after relu1, which works in place.
TEST(Net, ReadsTheLastTensorOfALayerInPlace) {
  Net net = small_net();
  give_samples(net);
  net.forward({}, "ip1");
  const std::vector<float> before = net.values("ip1").values;
  ASSERT_LT(*std::ranges::min_element(before), 0);
  net.forward("relu1", "relu1");
  const std::vector<float> after = net.values("ip1").values;
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i], std::max(before[i], 0.F));
}

TEST(Net, BackwardBeginsWithWrittenGradients) {
  Net net = small_net();
  give_samples(net);
  const std::vector<float> weights = wave(16 * 6 * 25, 0.7);
  const auto value = [&] {
    net.forward({}, "pool1");
    return dot(net.values("pool1").values, weights);
  };
  net.forward();
  net.backward();  // leaves other gradients
  value();
  net.set_gradient("pool1", weights);
  net.clear_parameter_gradients();
  net.backward("pool1");
  EXPECT_EQ(net.gradient("pool1").values, weights);
  const std::vector<float> gradient = net.parameter_gradient("conv1/weight").values;
  const std::vector<float> values = net.parameter("conv1/weight").values;
  for (size_t at : {size_t{0}, size_t{20}, size_t{53}})
    EXPECT_NEAR(gradient[at],
                difference(
                    values, at, [&](const auto& v) { net.set_parameter("conv1/weight", v); }, value),
                0.5)
        << at;
}

TEST(Net, AddsGradientsOfParameters) {
  Net net = small_net();
  give_samples(net);
  net.forward();
  net.backward();
  const std::vector<float> once = net.parameter_gradient("ip2/weight").values;
  net.backward();
  const std::vector<float> twice = net.parameter_gradient("ip2/weight").values;
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
  net.clear_parameter_gradients();
  EXPECT_EQ(net.parameter_gradient("ip2/weight").values, std::vector<float>(64));
}

// A deploy net has no loss: any output's gradient may be written where the file says force_backward.
TEST(Net, HasGradientsOfInputsByForceBackward) {
  const std::string text = R"(force_backward: true
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 5 } } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
)";
  Net net(Network::from_text(text, {.phase = Phase::test}));
  net.set_values("data", wave(10, 1));
  net.forward();
  const std::vector<float> top = wave(6, 0.3), weight = net.parameter("ip/weight").values;
  net.set_gradient("ip", top);
  net.backward();
  const std::vector<float> gradient = net.gradient("data").values;
  for (size_t sample = 0; sample < 2; ++sample)
    for (size_t i = 0; i < 5; ++i) {
      double sum = 0;
      for (size_t of = 0; of < 3; ++of) sum += static_cast<double>(weight[of * 5 + i]) * top[sample * 3 + of];
      EXPECT_NEAR(gradient[sample * 5 + i], sum, 1e-6);
    }
  Net without(Network::from_text(text.substr(text.find('\n')), {.phase = Phase::test}));
  EXPECT_FALSE(without.has_gradient("data"));
  without.set_gradient("ip", top);
  without.backward();
  EXPECT_EQ(without.gradient("data").values, std::vector<float>(10));
}

TEST(Net, KeepsParametersAndInputsThroughAReshape) {
  Net net = small_net(Phase::test);
  give_samples(net);
  net.forward();
  const std::vector<float> weight = net.parameter("ip1/weight").values, scores = net.values("ip2").values;
  EXPECT_THROW(net.reshape({{"ip1", {3, 16}}}), UserError);
  EXPECT_THROW(net.reshape({{"data", {16, 1, 13, 12}}}), UserError);  // other weights
  net.reshape({{"data", {3, 1, 12, 12}}, {"label", {3}}});
  EXPECT_EQ(net.shape("ip2"), (Shape{3, 4}));
  EXPECT_EQ(net.parameter("ip1/weight").values, weight);
  const std::vector<float> data = wave(16 * 144, 0.37);
  net.set_values("data", std::span(data).first(3 * 144));
  net.forward();
  const std::vector<float> few = net.values("ip2").values;
  for (size_t i = 0; i < few.size(); ++i) EXPECT_NEAR(few[i], scores[i], 1e-5);
}

TEST(Net, SharesParameters) {
  Net one = small_net(), other = small_net(Phase::test);
  other.share_with(one);
  for (Net* net : {&one, &other}) {
    const std::vector<float> values = wave(96, net == &one ? 0.1 : 0.2);
    net->set_parameter("ip1/bias", std::span(values).first(16));
    EXPECT_EQ(one.parameter("ip1/bias").values, other.parameter("ip1/bias").values);
    give_samples(*net);
  }
  one.forward();
  other.forward();
  for (size_t i = 0; i < 64; ++i)
    EXPECT_NEAR(one.values("ip2").values[i], other.values("ip2").values[i], 1e-5);
  Net back = small_net();
  back.share_with(other);  // whose store has gradients of `one`
  give_samples(back);
  back.forward();
  back.backward();
  EXPECT_EQ(back.values("ip2").values, one.values("ip2").values);
}

TEST(Net, ReadsDataThatItIsFed) {
  Net net(Network::from_text(small_lenet()), Data().fill("data", fill_bars));
  net.forward();
  const std::vector<float> first = net.values("data").values;
  net.forward("conv1");
  EXPECT_EQ(net.values("data").values, first);
  net.forward();
  EXPECT_NE(net.values("data").values, first);
  const std::vector<float> images(16 * 144, 2), labels(16, 3);
  net.feed(Data().spans("data", {images, labels}, {{1, 12, 12}, {}}));
  net.forward();
  EXPECT_EQ(net.values("data").values, images);
  EXPECT_EQ(net.values("label").values, labels);
}

TEST(Net, WritesAndReadsWeights) {
  const ScratchFolder folder;
  Net net = small_net();
  for (const char* name : {"net.caffemodel", "net.h5"}) {
    const std::string path = folder / name;
    net.save_weights(path);
    Net read = small_net(Phase::test, {.seed = 7});
    EXPECT_NE(read.parameter("conv1/weight").values, net.parameter("conv1/weight").values);
    EXPECT_TRUE(read.load_weights(path).of_network.empty());
    EXPECT_EQ(read.parameter("conv1/weight").values, net.parameter("conv1/weight").values);
  }
}

// A trainer that opens its nets.
Trainer open_trainer(const std::string& type = "SGD", double momentum = 0) {
  return Trainer(Solver(SolverOptions{.type = type, .base_lr = 0.1, .momentum = momentum, .test_iter = 1},
                        Network::from_text(small_lenet())),
                 Data().fill("data", fill_bars), {.open_nets = true});
}

TEST(OpenTrainer, TrainsAsOneThatIsNot) {
  Trainer open = open_trainer("Adam", 0.9);
  Trainer closed(Solver(SolverOptions{.type = "Adam", .base_lr = 0.1, .momentum = 0.9, .test_iter = 1},
                        Network::from_text(small_lenet())),
                 Data().fill("data", fill_bars));
  open.step(5);
  closed.step(5);
  EXPECT_NEAR(open.loss(), closed.loss(), 1e-4);
  Net net = open.net();
  EXPECT_EQ(net.values("loss").values[0], static_cast<float>(open.loss()));
  EXPECT_EQ(net.parameter("ip1/weight").values, open.parameter("ip1/weight").values);
  EXPECT_EQ(net.gradient("ip2").values, open.gradient("ip2").values);
}

TEST(OpenTrainer, ItsNetsHaveItsParameters) {
  Trainer trainer = open_trainer();
  Net net = trainer.net(), test = trainer.test_net(0);
  EXPECT_EQ(test.phase(), Phase::test);
  const std::vector<float> zeros(64);
  net.set_parameter("ip2/weight", zeros);
  EXPECT_EQ(trainer.parameter("ip2/weight").values, zeros);
  test.forward();
  EXPECT_NEAR(test.values("loss").values[0], std::log(4), 1e-6);
  test.share_with(net);  // it does already
  EXPECT_THROW(test.share_with(small_net()), UserError);
  EXPECT_THROW(trainer.test_net(1), UserError);
  EXPECT_THROW(net.reshape({{"data", {3, 1, 12, 12}}}), UserError);
}

TEST(OpenTrainer, UpdatesByGradientsThatWereWritten) {
  Trainer trainer = open_trainer();
  Net net = trainer.net();
  net.forward();
  net.backward();
  const std::vector<float> before = net.parameter("ip2/weight").values, gradient = wave(64, 0.5);
  net.set_parameter_gradient("ip2/weight", gradient);
  trainer.update();
  EXPECT_EQ(trainer.iteration(), 0);
  const std::vector<float> after = trainer.parameter("ip2/weight").values;
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(after[i], before[i] - 0.1F * gradient[i], 1e-6);
}

class Doubler : public Observer {
 public:
  explicit Doubler(Trainer& trainer) : net_(trainer.net()) {}
  void gradients(int64_t) override {
    std::vector<float> gradient = net_.parameter_gradient("ip2/weight").values;
    for (float& value : gradient) value *= 2;
    net_.set_parameter_gradient("ip2/weight", gradient);
  }

 private:
  Net net_;
};

TEST(OpenTrainer, AnObserverMayChangeGradients) {
  Trainer trainer = open_trainer(), plain = open_trainer();
  Doubler doubler(trainer);
  trainer.observe(doubler);
  const std::vector<float> before = plain.parameter("ip2/weight").values;
  trainer.step();
  plain.step();
  const std::vector<float> once = plain.parameter("ip2/weight").values,
                           twice = trainer.parameter("ip2/weight").values;
  for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(twice[i] - before[i], 2 * (once[i] - before[i]), 1e-6);
}

TEST(OpenTrainer, ReadsWhatWasWrittenIntoInputs) {
  Trainer trainer(Solver(SolverOptions{.base_lr = 0.1}, Network::from_text(small_lenet())), {},
                  {.open_nets = true});
  Net net = trainer.net();
  give_samples(net);
  trainer.step();
  Net alone = small_net();
  give_samples(alone);
  EXPECT_NEAR(trainer.loss(), alone.forward(), 1e-6);
}

}  // namespace
}  // namespace cortado::api
