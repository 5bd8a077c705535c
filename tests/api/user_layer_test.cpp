#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "tests/api/nets.h"

namespace cortado::api {
namespace {

// y = a x^2 + b with one number a and one b for each column; what it was asked to do, in order.
class Square : public UserLayer {
 public:
  void set_up() override {
    said += "s";
    parameters = {std::make_shared<UserTensor>(Shape{1}),
                  std::make_shared<UserTensor>(Shape{bottoms[0]->shape().back()})};
    parameters[0]->values()[0] = 2;
    for (size_t i = 0; i < columns(); ++i) parameters[1]->values()[i] = static_cast<float>(i);
  }
  void reshape() override {
    said += "r";
    if (parameters[1]->size() != bottoms[0]->shape().back()) throw UserError("it needs as many columns");
    tops[0]->reshape(bottoms[0]->shape());
  }
  void forward() override {
    said += "f";
    for (size_t i = 0; i < bottoms[0]->values().size(); ++i) {
      const float x = bottoms[0]->values()[i];
      tops[0]->values()[i] = parameters[0]->values()[0] * x * x + parameters[1]->values()[i % columns()];
    }
  }
  void backward(const std::vector<bool>& propagate_down) override {
    said += propagate_down[0] ? "B" : "b";
    for (size_t i = 0; i < bottoms[0]->values().size(); ++i) {
      const float x = bottoms[0]->values()[i], dy = tops[0]->gradient()[i];
      parameters[0]->gradient()[0] += dy * x * x;
      parameters[1]->gradient()[i % columns()] += dy;
      bottoms[0]->gradient()[i] = 2 * parameters[0]->values()[0] * x * dy;
    }
  }
  std::string said;

 private:
  size_t columns() const { return static_cast<size_t>(bottoms[0]->shape().back()); }
};

constexpr const char* net_text = R"(force_backward: true
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 5 } } }
layer { name: "square" type: "Python" bottom: "data" top: "y" python_param { layer: "Square" param_str: "2" } })";

std::string with_loss() {
  return std::string(net_text).append(
      R"(layer { name: "loss" type: "Reduction" bottom: "y" top: "loss" loss_weight: 1
    reduction_param { operation: MEAN } })");
}

struct Made {
  std::shared_ptr<Square> layer;
  std::vector<UserLayerText> texts;
  NetworkOptions options() {
    return {.user_layers = [this](const UserLayerText& text) {
      texts.push_back(text);
      return layer = std::make_shared<Square>();
    }};
  }
};

std::vector<float> wave(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i)));
  return values;
}

TEST(UserLayer, ComputesWhatTheProgramSays) {
  Made made;
  Net net(Network::from_text(net_text, made.options()));
  ASSERT_EQ(made.texts.size(), 1U);
  EXPECT_EQ(made.texts[0].name, "square");
  EXPECT_EQ(made.texts[0].layer, "Square");
  EXPECT_EQ(made.texts[0].parameters, "2");
  EXPECT_TRUE(made.texts[0].is_training);
  EXPECT_EQ(net.parameter("square/blob1").values, (std::vector<float>{0, 1, 2, 3, 4}));
  const std::vector<float> x = wave(120);
  net.set_values("data", x);
  net.forward();
  const Tensor y = net.values("y");
  EXPECT_EQ(y.shape, (Shape{2, 3, 4, 5}));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_FLOAT_EQ(y.values[i], 2 * x[i] * x[i] + static_cast<float>(i % 5)) << i;
  net.set_gradient("y", wave(120));
  net.backward();
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(net.gradient("data").values[i], 4 * x[i] * x[i]) << i;
  double sum = 0;
  for (float value : x) sum += std::pow(static_cast<double>(value), 3);
  EXPECT_NEAR(net.parameter_gradient("square/blob0").values[0], sum, 1e-5);
  EXPECT_EQ(made.layer->said, "srrfB");
}

TEST(UserLayer, IsOneObjectAcrossShapesAndShares) {
  Made made;
  Net net(Network::from_text(net_text, made.options()));
  net.set_parameter("square/blob0", std::vector<float>{3});
  net.reshape({{"data", {1, 1, 1, 5}}});
  net.set_values("data", std::vector<float>(5, 1));
  net.forward();
  EXPECT_EQ(net.values("y").values, (std::vector<float>{3, 4, 5, 6, 7}));
  Made of_other;
  Net other(Network::from_text(net_text, of_other.options()));
  other.share_with(net);
  EXPECT_EQ(other.parameter("square/blob0").values[0], 3);
  EXPECT_EQ(made.texts.size(), 1U);
  EXPECT_EQ(of_other.texts.size(), 1U);
  EXPECT_EQ(std::ranges::count(made.layer->said, 's'), 1);
  // Shapes that do not fit change nothing, though the layer was asked.
  EXPECT_THROW(net.reshape({{"data", {1, 1, 1, 4}}}), UserError);
  net.forward();
  EXPECT_EQ(net.values("y").values, (std::vector<float>{3, 4, 5, 6, 7}));
}

TEST(UserLayer, TrainsItsParameters) {
  Made made;
  TrainerOptions options;
  options.user_layers = made.options().user_layers;
  const std::vector<float> x = wave(120);
  Data data;
  data.spans("data", {x}, {{3, 4, 5}});
  Trainer trainer(Solver({.base_lr = 0.5}, Network::from_text(with_loss())), data, options);
  trainer.step(1);
  double mean = 0;
  for (float value : x) mean += static_cast<double>(value) * value / 120;
  EXPECT_NEAR(trainer.parameter("square/blob0").values[0], 2 - 0.5 * mean, 1e-6);
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(trainer.parameter("square/blob1").values[i], static_cast<double>(i) - 0.1, 1e-6);
}

TEST(UserLayer, RefusesRanksAndWhatIsNotThere) {
  EXPECT_THROW(Net{Network::from_text(net_text)}, UserError);
  EXPECT_THROW(
      Net(Network::from_text(net_text, {.user_layers = [](const UserLayerText&) { return nullptr; }})),
      UserError);
  Made made;
  const Network network = Network::from_text(with_loss(), made.options());
  try {
    Job::local(
        2, [&](Job& job) { Trainer(Solver({.base_lr = 1}, network), {}, {.job = job, .strategy = "data"}); });
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "net:3: layer 'square': a program computes it, whole: nobody knows how to cut it over 2 ranks; "
              "train on one rank");
  }
}

}  // namespace
}  // namespace cortado::api
