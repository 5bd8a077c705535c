// Recurrent layers learn what only a state can tell: what came in two steps ago.
#include <gtest/gtest.h>
#include <string>

#include "cortado/api/cortado.h"

namespace cortado::api {
namespace {

constexpr int64_t steps = 5, sequences = 16;

// A bit of an endless sequence.
float bit(int64_t step, int64_t sequence) {
  auto mixed = static_cast<uint64_t>(step * sequences + sequence) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ mixed >> 29) * 0xBF58476D1CE4E5B9u;
  return static_cast<float>(mixed >> 40 & 1);
}

// Each batch has the next steps of the sequences: what its first two labels ask for was in the batch before.
// tops: a bit, the bit two steps ago, and the indicator that the sequence goes on.
void fill_steps(BatchRequest& batch) {
  size_t i = 0;
  for (int64_t t = batch.begin; t < batch.end; ++t) {
    const int64_t step = batch.number * steps + t;
    for (int64_t n = 0; n < sequences; ++n, ++i) {
      batch.tops[0].values[i] = 2 * bit(step, n) - 1;
      batch.tops[1].values[i] = bit(step - 2, n);
      batch.tops[2].values[i] = step == 0 ? 0.F : 1.F;
    }
  }
}

Network net_with(const std::string& type) {
  return Network::from_text(R"(
layer { name: "data" type: "Input" top: "x" top: "label" top: "cont" input_param {
  shape { dim: 5 dim: 16 dim: 1 } shape { dim: 5 dim: 16 } shape { dim: 5 dim: 16 } } }
layer { name: "state" type: ")" +
                            type + R"(" bottom: "x" bottom: "cont" top: "y" recurrent_param {
  num_output: 12 weight_filler { type: "uniform" min: -0.3 max: 0.3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "y" top: "ip" inner_product_param {
  num_output: 2 axis: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" softmax_param { axis: 2 } }
)");
}

class Recurrent : public ::testing::TestWithParam<const char*> {};

// Without states that go on from batch to batch two steps of five could only be guessed: 0.28.
TEST_P(Recurrent, LearnsAcrossBatches) {
  const SolverOptions options{.type = "Adam", .base_lr = 0.01, .momentum = 0.9, .max_iter = 800};
  Trainer trainer(Solver(options, net_with(GetParam())), Data().fill("data", fill_steps), {.threads = 1});
  trainer.step();
  EXPECT_NEAR(trainer.loss(), 0.69, 0.1);
  trainer.step(799);
  double loss = 0;
  for (int i = 0; i < 10; ++i) {
    trainer.step();
    loss += trainer.loss() / 10;
  }
  EXPECT_LT(loss, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Types, Recurrent, ::testing::Values("LSTM", "RNN"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cortado::api
