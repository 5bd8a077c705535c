// Losses and accuracy: values worked out by hand, gradients against finite differences.
#include <cmath>

#include "cortado/base/error.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"

#include "tests/kernels/layer_run.h"

namespace cortado {
namespace {

using check::CheckOptions;
using check::gradients_match_differences;
using check::LayerRun;
using check::same;
using check::Values;

Task task_of(LayerPtr layer, std::vector<Shape> inputs, int outputs = 1) {
  return whole_task(std::move(layer), Phase::train, inputs, outputs);
}

std::shared_ptr<SoftmaxLoss> softmax_loss(Normalization normalization, std::optional<int> ignore_label = {}) {
  return std::make_shared<SoftmaxLoss>(
      SoftmaxLossOptions{.axis = 1, .ignore_label = ignore_label, .normalization = normalization});
}

// Scores log(1), log(3) at every position: probabilities 1/4 and 3/4.
std::vector<double> scores_of_positions(int positions) {
  std::vector<double> scores;
  for (int i = 0; i < positions; ++i) scores.insert(scores.end(), {0, std::log(3.0)});
  return scores;
}

TEST(SoftmaxLoss, DividesByEachNormalization) {
  // 2 samples of 3 positions, one of them ignored: 2 of class 0 (loss log 4), 3 of class 1 (log 4/3).
  std::vector<double> labels{0, 1, 9, 1, 0, 1};
  double sum = 2 * std::log(4.0) + 3 * std::log(4.0 / 3);
  std::vector<std::pair<Normalization, double>> divisors{{Normalization::full, 6},
                                                         {Normalization::valid, 5},
                                                         {Normalization::batch_size, 2},
                                                         {Normalization::none, 1}};
  for (auto [normalization, divisor] : divisors) {
    LayerRun run(softmax_loss(normalization, 9), {{2, 2, 3}, {2, 1, 3}}, 2);
    run.forward({scores_of_positions(6), labels});
    EXPECT_TRUE(same(run.output(), {sum / divisor}));
    EXPECT_TRUE(
        same(run.output(1), {0.25, 0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.75}));
    run.backward({10});
    double unit = 10 / divisor;
    EXPECT_TRUE(same(run.gradient(),
                     {-0.75 * unit, 0.75 * unit, 0.25 * unit, -0.25 * unit, 0, 0,  //
                      0.25 * unit, -0.25 * unit, -0.75 * unit, 0.75 * unit, 0.25 * unit, -0.25 * unit}));
  }
}

// PyTorch's CrossEntropyLoss(label_smoothing=0.2) of scores 0, log 3: the target of class 0 is 0.9, 0.1.
TEST(SoftmaxLoss, SmoothsLabels) {
  LayerRun run(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{.ignore_label = 9, .label_smoothing = 0.2}),
               {{3, 2}, {3}}, 1);
  run.forward({scores_of_positions(3), {0, 9, 1}});
  const double zero = std::log(4.0), one = std::log(4.0 / 3);
  EXPECT_TRUE(same(run.output(), {(0.9 * zero + 0.1 * one + 0.1 * zero + 0.9 * one) / 2}));
  run.backward({1});
  EXPECT_TRUE(
      same(run.gradient(), {(0.25 - 0.9) / 2, (0.75 - 0.1) / 2, 0, 0, (0.25 - 0.1) / 2, (0.75 - 0.9) / 2}));
}

TEST(SoftmaxLoss, IsZeroWhenEverythingIsIgnored) {
  LayerRun run(softmax_loss(Normalization::valid, 0), {{2, 2}, {2}}, 1);
  run.forward({scores_of_positions(2), {0, 0}});
  EXPECT_TRUE(same(run.output(), {0}));
  run.backward({1});
  EXPECT_TRUE(same(run.gradient(), {0, 0, 0, 0}));
}

TEST(SoftmaxLoss, ReadsLabelsInSpokenOrder) {
  // Labels of shape 1 x 2 x 3 (no channel axis) lie in memory as 1 x 3 x 2; positions are counted row by row.
  LayerRun run(softmax_loss(Normalization::none), {{1, 2, 2, 3}, {1, 2, 3}}, 1);
  std::vector<double> scores(12, 0.0);
  scores[2 * 1 + 1] = std::log(3.0);          // row 0, column 1, class 1
  run.forward({scores, {0, 0, 1, 0, 0, 0}});  // label 1 at row 0, column 1
  EXPECT_TRUE(same(run.output(), {5 * std::log(2.0) + std::log(4.0 / 3)}));
}

TEST(SoftmaxLoss, BoundsTheLossOfAnImpossibleLabel) {
  LayerRun run(softmax_loss(Normalization::none), {{1, 2}, {1}}, 1);
  run.forward({{0, 1000}, {0}});
  EXPECT_TRUE(same(run.output(), {-std::log(static_cast<double>(std::numeric_limits<float>::min()))}));
}

TEST(SoftmaxLoss, NamesALabelOutsideTheClasses) {
  LayerRun run(softmax_loss(Normalization::valid), {{2, 2}, {2}}, 1);
  for (double label : {2.0, -1.0, std::nan("")}) {
    try {
      run.forward({scores_of_positions(2), {0, label}});
      ADD_FAILURE() << "accepted";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("is outside [0, 2): the layer has 2 classes"),
                std::string::npos);
    }
  }
}

TEST(SoftmaxLoss, RefusesAnotherNumberOfLabels) {
  EXPECT_THROW(task_of(softmax_loss(Normalization::valid), {{2, 2, 3}, {2}}), UserError);
}

TEST(Softmax, SumsToOneAlongItsAxis) {
  LayerRun run(std::make_shared<Softmax>(SoftmaxOptions{.axis = -1}), {{1, 2, 2}}, 1);
  run.forward({{0, 0, std::log(3.0), std::log(4.0)}});  // memory: position, channel
  EXPECT_TRUE(same(run.output(), {0.25, 0.2, 0.75, 0.8}));
}

TEST(EuclideanLoss, IsHalfTheMeanSquare) {
  LayerRun run(std::make_shared<EuclideanLoss>(), {{2, 2}, {2, 2}}, 1);
  run.forward({{1, 2, 3, 4}, {0, 2, 5, 7}});
  EXPECT_TRUE(same(run.output(), {(1 + 0 + 4 + 9) / 4.0}));
  run.backward({2});
  EXPECT_TRUE(same(run.gradient(0), {1, 0, -2, -3}));
  EXPECT_TRUE(same(run.gradient(1), {-1, 0, 2, 3}));
}

TEST(SigmoidCrossEntropyLoss, DividesByEachNormalization) {
  std::vector<double> x{0, 0, std::log(3.0), -1000}, t{1, -1, 0, 0};
  double sum = std::log(2.0) + std::log(4.0) + 0;
  std::vector<std::pair<Normalization, double>> divisors{{Normalization::full, 4},
                                                         {Normalization::valid, 3},
                                                         {Normalization::batch_size, 2},
                                                         {Normalization::none, 1}};
  for (auto [normalization, divisor] : divisors) {
    SigmoidCrossEntropyLossOptions options{.ignore_label = -1, .normalization = normalization};
    LayerRun run(std::make_shared<SigmoidCrossEntropyLoss>(options), {{2, 2}, {2, 2}}, 1);
    run.forward({x, t});
    EXPECT_TRUE(same(run.output(), {sum / divisor}));
    run.backward({1});
    EXPECT_TRUE(same(run.gradient(), {-0.5 / divisor, 0, 0.75 / divisor, 0}));
  }
}

TEST(HingeLoss, PunishesMarginsBelowOne) {
  // Scores 0.5 and -2 with label 0, 3 and 0 with label 1: margins 0.5, 0 and 4, 1.
  std::vector<double> x{0.5, -2, 3, 0}, labels{0, 1};
  LayerRun l1(std::make_shared<HingeLoss>(HingeLossOptions{}), {{2, 2}, {2}}, 1);
  l1.forward({x, labels});
  EXPECT_TRUE(same(l1.output(), {5.5 / 2}));
  l1.backward({1});
  EXPECT_TRUE(same(l1.gradient(), {-0.5, 0, 0.5, -0.5}));
  LayerRun l2(std::make_shared<HingeLoss>(HingeLossOptions{.norm = HingeLossOptions::Norm::l2}),
              {{2, 2}, {2}}, 1);
  l2.forward({x, labels});
  EXPECT_TRUE(same(l2.output(), {(0.25 + 16 + 1) / 2}));
  l2.backward({1});
  EXPECT_TRUE(same(l2.gradient(), {-0.5, 0, 4, -1}));
}

TEST(MultinomialLogisticLoss, IsTheLogarithmOfTheLabelsProbability) {
  LayerRun run(std::make_shared<MultinomialLogisticLoss>(), {{3, 2}, {3}}, 1);
  run.forward({{0.25, 0.75, 0.5, 0.5, 0, 1}, {1, 0, 0}});
  EXPECT_TRUE(same(run.output(), {-(std::log(0.75) + std::log(0.5) + std::log(1e-20)) / 3}));
  LayerRun positive(std::make_shared<MultinomialLogisticLoss>(), {{2, 2}, {2}}, 1);
  positive.forward({{0.25, 0.75, 0.5, 0.5}, {1, 0}});
  positive.backward({4});
  EXPECT_TRUE(same(positive.gradient(), {0, -2 / 0.75, -2 / 0.5, 0}));
  EXPECT_THROW(positive.forward({{0.25, 0.75, 0.5, 0.5}, {1, 2}}), UserError);
}

// Scores log(1), log(3): probabilities 1/4 and 3/4, whose logarithms the labels' rows of the matrix weigh.
TEST(InfogainLoss, WeighsLogarithmsByTheLabelsRow) {
  const std::vector<double> h{1, 0.5, 0.25, 2};
  const double a = std::log(0.25), b = std::log(0.75), first = -(a + 0.5 * b), second = -(0.25 * a + 2 * b);
  const InfogainLossOptions options{.ignore_label = 9};
  LayerRun run(std::make_shared<InfogainLoss>(options), {{2, 2, 2}, {2, 2}, {2, 2}}, 2);
  run.forward({scores_of_positions(4), {0, 1, 9, 1}, h});
  EXPECT_TRUE(same(run.output(), {(first + 2 * second) / 3}));
  EXPECT_TRUE(same(run.output(1), {0.25, 0.75, 0.25, 0.75, 0.25, 0.75, 0.25, 0.75}));
  run.backward({3});
  const std::vector<double> of_first{0.25 * 1.5 - 1, 0.75 * 1.5 - 0.5},
      of_second{0.25 * 2.25 - 0.25, 0.75 * 2.25 - 2};
  EXPECT_TRUE(same(run.gradient(),
                   {of_first[0], of_first[1], of_second[0], of_second[1], 0, 0, of_second[0], of_second[1]}));
  const InfogainLossOptions file{.source = "h.binaryproto", .normalization = Normalization::none};
  LayerRun from_file(std::make_shared<InfogainLoss>(file, std::vector<float>{1, 0.5, 0.25, 2}), {{1, 2}, {1}},
                     1);
  from_file.forward({scores_of_positions(1), {1}});
  EXPECT_TRUE(same(from_file.output(), {second}));
}

TEST(InfogainLoss, WithTheIdentityIsSoftmaxLoss) {
  const Shape scores{3, 4, 2}, labels{3, 2};
  std::vector<double> x, identity(16);
  for (int i = 0; i < 24; ++i) x.push_back(std::sin(1.7 * i));
  for (int i = 0; i < 4; ++i) identity[5 * i] = 1;
  const std::vector<double> y{0, 3, 2, 1, 3, 3};
  LayerRun infogain(std::make_shared<InfogainLoss>(InfogainLossOptions{}), {scores, labels, {1, 1, 4, 4}}, 1);
  LayerRun softmax(softmax_loss(Normalization::valid), {scores, labels}, 1);
  infogain.forward({x, y, identity});
  softmax.forward({x, y});
  EXPECT_TRUE(same(infogain.output(), softmax.output()));
  infogain.backward({1});
  softmax.backward({1});
  EXPECT_TRUE(same(infogain.gradient(), softmax.gradient()));
}

TEST(InfogainLoss, RefusesAMatrixOfAnotherSize) {
  const auto message = [](const InfogainLossOptions& options, const std::vector<Shape>& inputs) {
    try {
      task_of(std::make_shared<InfogainLoss>(options, std::vector<float>(4)), inputs);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message({}, {{2, 3}, {2}}),
            "the infogain matrix is not given; set source, or give it as the third input");
  EXPECT_EQ(message({.source = "h"}, {{2, 3}, {2}}),
            "the infogain matrix of 3 classes needs 3 x 3 values, but h has 4");
  EXPECT_EQ(message({}, {{2, 3}, {2}, {3, 2}}),
            "the infogain matrix of 3 classes needs 3 x 3 values, but input 3 has 6");
}

TEST(ContrastiveLoss, PullsSimilarPairsAndPushesOthersToTheMargin) {
  // Distances 5 (similar), 0.5 and 2 (not): 25, (1 - 0.5)^2, 0; legacy: 25, 1 - 0.25, 0.
  std::vector<std::vector<double>> inputs{{3, 4, 0.5, 0, 2, 0}, {0, 0, 0, 0, 0, 0}, {1, 0, 0}};
  std::vector<Shape> shapes{{3, 2}, {3, 2, 1, 1}, {3}};
  LayerRun run(std::make_shared<ContrastiveLoss>(ContrastiveLossOptions{}), shapes, 1);
  run.forward(inputs);
  EXPECT_TRUE(same(run.output(), {(25 + 0.25) / 6}));
  LayerRun legacy(std::make_shared<ContrastiveLoss>(ContrastiveLossOptions{.legacy_version = true}), shapes,
                  1);
  legacy.forward(inputs);
  EXPECT_TRUE(same(legacy.output(), {(25 + 0.75) / 6}));
  legacy.backward({3});
  EXPECT_TRUE(same(legacy.gradient(0), {3, 4, -0.5, 0, 0, 0}));
  EXPECT_TRUE(same(legacy.gradient(1), {-3, -4, 0.5, 0, 0, 0}));
}

TEST(Accuracy, CountsTiesAgainstTheLabel) {
  std::vector<double> scores{1, 1, 0, /**/ 0, 2, 1, /**/ 3, 1, 3, /**/ 5, 5, 5}, labels{0, 1, 1, 2};
  std::vector<double> expected{0.25, 0.5, 1};  // top 1: sample 1; top 2: samples 0, 1; top 3: all
  for (int top_k = 1; top_k <= 3; ++top_k) {
    LayerRun run(std::make_shared<Accuracy>(AccuracyOptions{.top_k = top_k}), {{4, 3}, {4}}, 1);
    run.forward({scores, labels});
    EXPECT_TRUE(same(run.output(), {expected[top_k - 1]})) << "top " << top_k;
  }
  EXPECT_THROW(task_of(std::make_shared<Accuracy>(AccuracyOptions{.top_k = 4}), {{4, 3}, {4}}), UserError);
}

TEST(Accuracy, TellsClassesApartAndSkipsIgnoredLabels) {
  std::vector<double> scores{3, 1, 2, /**/ 3, 1, 2, /**/ 1, 3, 2, /**/ 1, 3, 2}, labels{0, 1, 1, 7};
  LayerRun run(std::make_shared<Accuracy>(AccuracyOptions{.ignore_label = 7}), {{4, 3}, {4}}, 2);
  run.forward({scores, labels});
  EXPECT_TRUE(same(run.output(), {2.0 / 3}));
  EXPECT_TRUE(same(run.output(1), {1, 0.5, 0}));
}

const Values three_classes{.low = 0, .high = 3, .integers = true};

TEST(LossGradients, MatchFiniteDifferences) {
  CheckOptions labelled{.inputs = {{}, three_classes}, .objective = {true, false}};
  EXPECT_TRUE(
      gradients_match_differences(task_of(std::make_shared<Softmax>(SoftmaxOptions{}), {{2, 3, 2, 2}})));
  EXPECT_TRUE(gradients_match_differences(
      task_of(std::make_shared<Softmax>(SoftmaxOptions{.axis = 2}), {{2, 3, 4}})));
  EXPECT_TRUE(gradients_match_differences(
      task_of(softmax_loss(Normalization::valid), {{2, 3, 2, 2}, {2, 2, 2}}, 2), labelled));
  EXPECT_TRUE(
      gradients_match_differences(task_of(softmax_loss(Normalization::full, 1), {{4, 3}, {4}}), labelled));
  EXPECT_TRUE(gradients_match_differences(
      task_of(std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{.label_smoothing = 0.1}), {{4, 3}, {4}}),
      labelled));
  EXPECT_TRUE(
      gradients_match_differences(task_of(std::make_shared<EuclideanLoss>(), {{2, 3, 2, 2}, {2, 12}})));
  SigmoidCrossEntropyLossOptions ignoring{.ignore_label = 2};
  EXPECT_TRUE(gradients_match_differences(
      task_of(std::make_shared<SigmoidCrossEntropyLoss>(ignoring), {{2, 3, 2}, {2, 6}}), labelled));
  for (auto norm : {HingeLossOptions::Norm::l1, HingeLossOptions::Norm::l2}) {
    EXPECT_TRUE(gradients_match_differences(
        task_of(std::make_shared<HingeLoss>(HingeLossOptions{.norm = norm}), {{4, 3}, {4}}), labelled));
  }
  EXPECT_TRUE(gradients_match_differences(task_of(std::make_shared<MultinomialLogisticLoss>(), {{4, 3}, {4}}),
                                          {.inputs = {{.low = 0.1, .high = 1}, three_classes}}));
  for (std::optional<int> ignored : {std::optional<int>(), std::optional<int>(1)}) {
    EXPECT_TRUE(gradients_match_differences(
        task_of(std::make_shared<InfogainLoss>(InfogainLossOptions{.ignore_label = ignored}),
                {{2, 3, 2, 2}, {2, 2, 2}, {3, 3}}, 2),
        labelled));
  }
  CheckOptions pairs{.inputs = {{}, {}, {.low = 0, .high = 2, .integers = true}}};
  for (bool legacy : {false, true}) {
    ContrastiveLossOptions options{.margin = 2, .legacy_version = legacy};
    EXPECT_TRUE(gradients_match_differences(
        task_of(std::make_shared<ContrastiveLoss>(options), {{6, 3}, {6, 3}, {6}}), pairs));
  }
}

}  // namespace
}  // namespace cortado
