#include "cortado/kernels/update.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>

#include "cortado/base/random.h"

namespace cortado {
namespace {

const char* name_of(UpdateOptions::Solver solver) {
  constexpr const char* names[] = {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "LARS"};
  return names[static_cast<size_t>(solver)];
}

using Solver = UpdateOptions::Solver;
using Regularization = UpdateOptions::Regularization;

// State of one element in float64 and a rule that says, by the textbook, what one update makes of it.
struct Element {
  double w = 0, h = 0, h2 = 0;
};
using TextbookRule = std::function<void(Element&, double gradient, const UpdateOptions&, double rate, int t)>;

TextbookRule textbook_rule(Solver solver) {
  switch (solver) {
    case Solver::nesterov:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int) {
        double next = o.momentum * e.h + rate * g;
        e.w += o.momentum * e.h - (1 + o.momentum) * next;
        e.h = next;
      };
    case Solver::adagrad:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int) {
        e.h += g * g;
        e.w -= rate * g / (o.delta + std::sqrt(e.h));
      };
    case Solver::rmsprop:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int) {
        e.h += (1 - o.rms_decay) * (g * g - e.h);
        e.w -= rate * g / (o.delta + std::sqrt(e.h));
      };
    case Solver::adadelta:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int) {
        e.h += (1 - o.momentum) * (g * g - e.h);
        double change = g * std::sqrt(e.h2 + o.delta) / std::sqrt(e.h + o.delta);
        e.h2 += (1 - o.momentum) * (change * change - e.h2);
        e.w -= rate * change;
      };
    case Solver::adam:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int t) {
        e.h += (1 - o.momentum) * (g - e.h);
        e.h2 += (1 - o.momentum2) * (g * g - e.h2);
        double correction = std::sqrt(1 - std::pow(o.momentum2, t)) / (1 - std::pow(o.momentum, t));
        e.w -= rate * correction * e.h / (o.delta + std::sqrt(e.h2));
      };
    default:
      return [](Element& e, double g, const UpdateOptions& o, double rate, int) {
        e.h = o.momentum * e.h + rate * g;
        e.w -= e.h;
      };
  }
}

class EverySolver : public testing::TestWithParam<std::tuple<Solver, Regularization>> {};

TEST_P(EverySolver, EqualsItsFormulaInFloat64) {
  constexpr int elements = 1003, iterations = 7;
  UpdateOptions options{.solver = std::get<0>(GetParam()),
                        .regularization = std::get<1>(GetParam()),
                        .momentum = 0.9,
                        .momentum2 = 0.99,
                        .delta = 1e-6,
                        .rms_decay = 0.95,
                        .lars_eta = 0.01};
  UpdateStep step{.rate = 0.05, .decay = 0.02, .gradient_scale = 0.25};
  RandomStream random{.seed = 7, .owner = RandomStream::owner_of("update")};

  std::vector<float> weights(elements), gradient(elements), first(elements), second(elements);
  std::vector<Element> expected(elements);
  for (int i = 0; i < elements; ++i) {
    weights[i] = i % 17 == 0 ? 0.0f : static_cast<float>(random.normal(i, 0, 0, 1));
    expected[i].w = weights[i];
  }
  TextbookRule rule = textbook_rule(options.solver);
  for (int t = 0; t < iterations; ++t) {
    for (int i = 0; i < elements; ++i) gradient[i] = static_cast<float>(random.normal(i, 2 + t, 0, 3));
    double rate = step.rate;
    if (options.solver == Solver::lars) {
      double w = 0, g = 0;
      for (int i = 0; i < elements; ++i) {
        w += expected[i].w * expected[i].w;
        g += std::pow(step.gradient_scale * gradient[i], 2);
      }
      rate *= options.lars_eta * std::sqrt(w) / (std::sqrt(g) + step.decay * std::sqrt(w));
    }
    for (int i = 0; i < elements; ++i) {
      double w = expected[i].w;
      double pull = options.regularization == Regularization::l2 ? w : (w > 0) - (w < 0);
      rule(expected[i], step.gradient_scale * gradient[i] + step.decay * pull, options, rate, t + 1);
    }
    step.iteration = t;
    update_parameter(options, {weights.data(), gradient.data(), {first.data(), second.data()}, elements},
                     step);
  }
  for (int i = 0; i < elements; ++i) {
    EXPECT_NEAR(weights[i], expected[i].w, 2e-5 * (1 + std::abs(expected[i].w))) << i;
    EXPECT_NEAR(first[i], expected[i].h, 2e-5 * (1 + std::abs(expected[i].h))) << i;
    if (history_count(options.solver) == 2) {
      EXPECT_NEAR(second[i], expected[i].h2, 2e-5 * (1 + std::abs(expected[i].h2))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Update, EverySolver,
                         testing::Combine(testing::Values(Solver::sgd, Solver::nesterov, Solver::adagrad,
                                                          Solver::rmsprop, Solver::adadelta, Solver::adam,
                                                          Solver::lars),
                                          testing::Values(Regularization::l2, Regularization::l1)),
                         [](const auto& info) {
                           return std::string(name_of(std::get<0>(info.param))) +
                                  (std::get<1>(info.param) == Regularization::l1 ? "L1" : "L2");
                         });

// By hand: w = 1, g = 2, decay 0.5: g' = 2.5; rate 0.1: h = 0.25, w = 0.75. Then g = 0: g' = 0.375,
// h = 0.0375 + 0.5 * 0.25 = 0.1625, w = 0.5875.
TEST(Update, MomentumByHand) {
  UpdateOptions options{.solver = Solver::sgd, .momentum = 0.5};
  float weight = 1, gradient = 2, history = 0;
  UpdateArguments arguments{&weight, &gradient, {&history, nullptr}, 1};
  update_parameter(options, arguments, {.rate = 0.1, .decay = 0.5});
  EXPECT_FLOAT_EQ(weight, 0.75f);
  gradient = 0;
  update_parameter(options, arguments, {.rate = 0.1, .decay = 0.5});
  EXPECT_FLOAT_EQ(history, 0.1625f);
  EXPECT_FLOAT_EQ(weight, 0.5875f);
}

// The first step of Adam moves every weight by the rate, whatever the gradient's size.
TEST(Update, AdamsFirstStepIsTheRate) {
  UpdateOptions options{.solver = Solver::adam, .momentum = 0.9, .momentum2 = 0.999, .delta = 1e-12};
  std::vector<float> weights(4, 1.0f), gradient{1e-3f, -5.0f, 70.0f, -1e-2f}, m(4), v(4);
  update_parameter(options, {weights.data(), gradient.data(), {m.data(), v.data()}, 4}, {.rate = 0.01});
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(weights[i], gradient[i] > 0 ? 0.99 : 1.01, 1e-6) << i;
}

TEST(Update, PaddingStaysZero) {
  for (Solver solver : {Solver::sgd, Solver::nesterov, Solver::adagrad, Solver::rmsprop, Solver::adadelta,
                        Solver::adam, Solver::lars}) {
    UpdateOptions options{.solver = solver, .momentum = 0.9};
    std::vector<float> weights(8), gradient(8), first(8), second(8);
    UpdateArguments arguments{weights.data(), gradient.data(), {first.data(), second.data()}, 8};
    update_parameter(options, arguments, {.rate = 0.1, .decay = 0.1});
    for (float weight : weights) EXPECT_EQ(weight, 0.0f) << name_of(solver);
  }
}

TEST(Update, LarsLeavesBiasesToPlainMomentum) {
  UpdateOptions options{.solver = Solver::lars, .momentum = 0, .lars_eta = 0.001};
  std::vector<float> weights{3, 4}, gradient{0.6f, 0.8f}, history(2);
  UpdateArguments arguments{weights.data(), gradient.data(), {history.data(), nullptr}, 2};
  update_parameter(options, arguments, {.rate = 1, .layer_wise = false});
  EXPECT_FLOAT_EQ(weights[0], 2.4f);
  // |w| = 4, |g| = 1: local rate 0.001 * 4.
  update_parameter(options, arguments, {.rate = 1, .layer_wise = true});
  EXPECT_FLOAT_EQ(history[1], 0.8f * 0.004f);
}

}  // namespace
}  // namespace cortado
