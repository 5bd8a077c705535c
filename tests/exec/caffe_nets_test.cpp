// Nets that Caffe runs and that need more of a network than one layer, one node: several bottoms, channels on
// another axis, layers of one name, parameters that layers see in several shapes.
#include <cmath>
#include <map>
#include <memory>

#include "cortado/base/batch_part.h"
#include "cortado/base/file.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/device/host_view.h"
#include "cortado/exec/executor.h"
#include "cortado/layers/filler.h"
#include "cortado/net/declare_net.h"
#include "cortado/parallel/strategy.h"

#include "tests/exec/test_device.h"
#include "tests/net/net_testing.h"

namespace cortado {
namespace {

// A net with the same random batch each iteration.
class Running {
 public:
  explicit Running(const std::string& text, Communicator* ranks = nullptr,
                   const std::string& strategy = "single", Phase phase = Phase::train)
      : loaded_(load(text, phase)) {
    const Network& net = loaded_.network;
    CompileOptions options{.keep_tensors = ranks == nullptr};
    if (ranks) {
      options.ranks = ranks->size();
      options.rank = ranks->rank();
      options.strategies =
          resolve(load_strategy(strategy, net, ranks->size()), net, ranks->size(), "--strategy");
    }
    executor_ = std::make_unique<Executor>(net, compile(net, std::move(options)), store_, sources(),
                                           ExecutorOptions{.communicator = ranks});
  }

  const Network& net() const { return loaded_.network; }
  ParameterStore& store() { return store_; }
  // `ranks` restricts what is read: the samples of this rank.
  double step(float rate) {
    const double loss =
        executor_->run(iteration_++, [&](EntryIndex index) { testing::descend(store_, index, rate); });
    executor_->settle();
    return loss;
  }
  double loss() { return executor_->run(0); }
  std::vector<float> tensor(const std::string& name) const {
    return executor_->canonical_tensor(net().tensor(name));
  }
  // Gradient of the store's first parameter, in its memory order.
  std::vector<float> first_gradient() {
    const auto& entry = store_.entries()[EntryIndex(0)];
    const device::HostView view(store_.device(), entry.gradient, entry.elements);
    return {view.values().begin(), view.values().end()};
  }
  std::vector<float> parameter(const std::string& name) { return store_.canonical(store_.find(name)); }

 private:
  std::map<std::string, BatchSource> sources() {
    std::map<std::string, BatchSource> sources;
    for (const auto& node : net().nodes()) {
      if (!node.layer->is_source()) continue;
      const size_t first = batches_.size();
      for (TensorIndex tensor : node.outputs) {
        const Shape& shape = net().tensors()[tensor].shape;
        batches_.emplace_back(static_cast<size_t>(shape.size()));
        fill({.type = Filler::Type::gaussian}, shape,
             {.seed = 5, .owner = static_cast<uint32_t>(tensor.value())}, batches_.back().data());
      }
      sources[node.name] = [this, first, node] { return pointers(node, first); };
    }
    return sources;
  }
  // The boxes that this rank holds.
  std::vector<const float*> pointers(const Network::Node& node, size_t first) {
    std::vector<const float*> pointers;
    const BatchPart part = executor_->program().samples().at(node.name);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      std::vector<float>& held = held_[first + i];
      held.resize(static_cast<size_t>(part.tops[i].shape().size()));
      cut_out(Box::whole(net().tensors()[node.outputs[i]].shape), batches_[first + i].data(), part.tops[i],
              held.data());
      pointers.push_back(held.data());
    }
    return pointers;
  }

  LoadedNetwork loaded_;
  const testing::TestDevice device_;
  ParameterStore store_{device_};
  std::vector<std::vector<float>> batches_;
  std::map<size_t, std::vector<float>> held_;  // of each batch
  std::unique_ptr<Executor> executor_;
  uint64_t iteration_ = 0;
};

std::string input(const std::string& shapes, const std::string& tops) {
  return "name: 'n' layer { name: 'in' type: 'Input' " + tops + " input_param { " + shapes + " } }\n";
}

void expect_near(const std::vector<float>& one, const std::vector<float>& other, float tolerance = 1e-4f) {
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(one[i], other[i], tolerance * (1 + std::abs(one[i]))) << i;
}

// A convolution of two bottoms is two convolutions that share weights and bias.
TEST(CaffeNets, AConvolutionFiltersEachOfItsBottoms) {
  for (const std::string type : {"Convolution", "Deconvolution"}) {
    SCOPED_TRACE(type);
    const std::string options =
        " convolution_param { num_output: 4 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }\n";
    const std::string in = input(
        "shape { dim: 3 dim: 2 dim: 5 dim: 6 } shape { dim: 3 dim: 2 dim: 5 dim: 6 }", "top: 'x' top: 'z'");
    const std::string loss =
        "layer { name: 'sum' type: 'Reduction' bottom: 'a' top: 'sa' reduction_param { operation: SUMSQ } "
        "loss_weight: 1 }\n"
        "layer { name: 'sum2' type: 'Reduction' bottom: 'b' top: 'sb' loss_weight: 2 }\n";
    Running one(in + "layer { name: 'c' type: '" + type + "' bottom: 'x' bottom: 'z' top: 'a' top: 'b'" +
                options + loss);
    const std::string shared = "' param { name: 'c/weight' } param { name: 'c/bias' }";
    Running two(in + "layer { name: 'c' type: '" + type + "' bottom: 'x' top: 'a" + shared + options +
                "layer { name: 'd' type: '" + type + "' bottom: 'z' top: 'b" + shared + options + loss);
    EXPECT_EQ(one.net().parameter_count(), two.net().parameter_count());
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(one.step(1e-3f), two.step(1e-3f), 1e-3) << i;
    expect_near(one.tensor("b"), two.tensor("b"));
    expect_near(one.parameter("c/weight"), two.parameter("c/weight"));
    expect_near(one.parameter("c/bias"), two.parameter("c/bias"));
  }
}

// y[a, b, o, p, q] = sum over c, k, l of w[o, c, k, l] * x[a, b, c, p + k, q + l].
TEST(CaffeNets, ChannelsMayLieOnAnyAxis) {
  for (int axis : {0, 2, -3}) {
    SCOPED_TRACE(axis);
    const bool first = axis == 0;
    const int outer = first ? 1 : 6, channels = first ? 2 : 3;
    Running run(
        input(first ? "shape { dim: 2 dim: 5 dim: 4 }" : "shape { dim: 2 dim: 3 dim: 3 dim: 5 dim: 4 }",
              "top: 'x'") +
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 4 "
        "kernel_size: 2 bias_term: false axis: " +
        std::to_string(axis) + " weight_filler { type: 'gaussian' } } loss_weight: 1 }\n");
    const auto before = run.parameter("c/weight");
    run.step(0);
    const auto x = run.tensor("x"), y = run.tensor("y"), w = run.parameter("c/weight");
    const Shape shape = run.net().tensors()[run.net().tensor("y")].shape;
    EXPECT_EQ(shape, first ? (Shape{4, 4, 3}) : (Shape{2, 3, 4, 4, 3}));
    ASSERT_EQ(w.size(), static_cast<size_t>(4 * channels * 4));
    for (int n = 0; n < outer; ++n)
      for (int o = 0; o < 4; ++o)
        for (int p = 0; p < 4; ++p)
          for (int q = 0; q < 3; ++q) {
            double sum = 0;
            for (int c = 0; c < channels; ++c)
              for (int k = 0; k < 2; ++k)
                for (int l = 0; l < 2; ++l)
                  sum += w[((o * channels + c) * 2 + k) * 2 + l] *
                         x[((n * channels + c) * 5 + p + k) * 4 + q + l];
            ASSERT_NEAR(y[((n * 4 + o) * 4 + p) * 3 + q], sum, 1e-4);
          }
  }
}

// The gradient of weights after a Reshape: of the sum of all outputs by w[o, c] it is the sum of x's channel
// c.
TEST(CaffeNets, AConvolutionWithoutSpatialAxesIsAProduct) {
  for (const std::string type : {"Convolution", "Deconvolution"}) {
    SCOPED_TRACE(type);
    const bool transposed = type == "Deconvolution";
    Running run(input("shape { dim: 2 dim: 3 dim: 4 dim: 5 }", "top: 'x'") + "layer { name: 'c' type: '" +
                type +
                "' bottom: 'x' top: 'y' convolution_param { num_output: 2 kernel_size: 3 axis: 3"
                " weight_filler { type: 'gaussian' } } }\n"
                "layer { name: 's' type: 'Reduction' bottom: 'y' top: 's' loss_weight: 1 }\n");
    run.step(0);
    const auto x = run.tensor("x"), y = run.tensor("y"), w = run.parameter("c/weight");
    EXPECT_EQ(run.net().parameters()[ParameterIndex(0)].spec.shape,
              transposed ? (Shape{5, 2}) : (Shape{2, 5}));
    for (int n = 0; n < 24; ++n)
      for (int o = 0; o < 2; ++o) {
        double sum = 0;
        for (int c = 0; c < 5; ++c) sum += x[n * 5 + c] * w[transposed ? c * 2 + o : o * 5 + c];
        ASSERT_NEAR(y[n * 2 + o], sum, 1e-4);
      }
  }
}

TEST(CaffeNets, GradientsPassAConvolutionOnAnotherAxis) {
  const std::string in = input("shape { dim: 2 dim: 3 dim: 3 dim: 5 dim: 4 }", "top: 'x'") +
                         "layer { name: 'before' type: 'Scale' bottom: 'x' top: 'p' }\n";
  const std::string options = "num_output: 4 kernel_size: 2 weight_filler { type: 'xavier' }";
  const std::string loss =
      "layer { name: 's' type: 'Reduction' bottom: 'y' top: 's' loss_weight: 1 "
      "reduction_param { operation: SUMSQ } }\n";
  Running one(in + "layer { name: 'c' type: 'Convolution' bottom: 'p' top: 'y' convolution_param { axis: 2 " +
              options + " } }\n" + loss);
  Running steps(
      in +
      "layer { name: 'r' type: 'Reshape' bottom: 'p' top: 'r' reshape_param { shape { dim: -1 } "
      "num_axes: 2 } }\n"
      "layer { name: 'c' type: 'Convolution' bottom: 'r' top: 'c' convolution_param { " +
      options +
      " } }\n"
      "layer { name: 't' type: 'Reshape' bottom: 'c' top: 'y' reshape_param { shape { dim: 2 dim: 3 } "
      "num_axes: 1 } }\n" +
      loss);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(one.step(1e-3f), steps.step(1e-3f), 1e-3);
  for (const char* name : {"c/weight", "c/bias", "before/weight"}) {
    SCOPED_TRACE(name);
    expect_near(one.parameter(name), steps.parameter(name));
  }
}

// Three iterations on two ranks give the parameters of `alone`, wherever a rank holds them whole.
void expect_trains_the_same(const std::string& net, Running& alone, const std::string& strategy,
                            const std::vector<std::string>& parameters) {
  LocalJob(2).run([&](Communicator& ranks) {
    Running run(net, &ranks, strategy);
    for (int i = 0; i < 3; ++i) run.step(1e-3f);
    for (const std::string& name : parameters) {
      const auto& entry = run.store().entries()[run.store().find(name)];
      const bool whole = entry.held && entry.slice == Box::whole(entry.spec.shape);
      if (whole) expect_near(run.parameter(name), alone.parameter(name));
    }
  });
}

// A net whose decoder has its encoder's weight, in another shape.
const std::string tied =
    input("shape { dim: 4 dim: 3 }", "top: 'x'") +
    "layer { name: 'encode' type: 'InnerProduct' bottom: 'x' top: 'e' param { name: 'w' }"
    " inner_product_param { num_output: 5 bias_term: false weight_filler { type: 'gaussian' std: 0.5 } } }\n"
    "layer { name: 'decode' type: 'InnerProduct' bottom: 'e' top: 'd'"
    " param { name: 'w' share_mode: PERMISSIVE }"
    " inner_product_param { num_output: 3 bias_term: false } }\n"
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'd' bottom: 'x' top: 'loss' }\n";

// y = V W x with W (5 x 3) and V (3 x 5) the same memory.
TEST(CaffeNets, LayersSeeASharedParameterInTheirOwnShapes) {
  Running run(tied);
  ASSERT_EQ(run.net().parameters().size(), 1u);
  run.loss();
  const auto x = run.tensor("x"), d = run.tensor("d");
  auto w = run.parameter("w");
  for (int n = 0; n < 4; ++n)
    for (int o = 0; o < 3; ++o) {
      double sum = 0;
      for (int m = 0; m < 5; ++m)
        for (int k = 0; k < 3; ++k) sum += w[o * 5 + m] * w[m * 3 + k] * x[n * 3 + k];
      ASSERT_NEAR(d[n * 3 + o], sum, 1e-4);
    }
  const std::vector<float> gradient = run.first_gradient();
  for (size_t k = 0; k < w.size(); ++k) {
    constexpr float step = 1e-2f;
    const float middle = w[k];
    w[k] = middle + step;
    run.store().set(EntryIndex(0), w);
    const double above = run.loss();
    w[k] = middle - step;
    run.store().set(EntryIndex(0), w);
    const double below = run.loss();
    w[k] = middle;
    EXPECT_NEAR(gradient[k], (above - below) / (2 * step), 0.02 * (1 + std::abs(gradient[k]))) << k;
  }
}

TEST(CaffeNets, SeveralShapesOfAParameterAreCutBySampleAlone) {
  Running alone(tied);
  for (int i = 0; i < 3; ++i) alone.step(1e-3f);
  for (const std::string strategy : {"data", "model", "random:3"}) {
    SCOPED_TRACE(strategy);
    expect_trains_the_same(tied, alone, strategy, {"w"});
  }
  const Network net = load(tied).network;
  EXPECT_NE(error_of([&] {
              resolve(parse_strategy(R"({"format": "cortado-strategy", "version": 1, "ranks": 2,
                                         "layers": {"*code": {"c": 2}, "*": {"n": 2}}})",
                                     "s.json"),
                      net, 2, "s.json");
            }).find("s.json: layer 'encode': it shares a parameter in another shape"),
            std::string::npos);
}

// The parts of a layer follow its strategy; what computes by samples alone takes the samples.
TEST(CaffeNets, PartsOfAConvolutionAreCutWithIt) {
  const std::string net =
      input("shape { dim: 4 dim: 3 dim: 6 dim: 6 } shape { dim: 4 dim: 3 dim: 6 dim: 6 }",
            "top: 'x' top: 'z'") +
      "layer { name: 'c' type: 'Convolution' bottom: 'x' bottom: 'z' top: 'a' top: 'b'"
      " convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'sum' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 's' }\n"
      "layer { name: 'd' type: 'Convolution' bottom: 's' top: 'd'"
      " convolution_param { num_output: 2 kernel_size: 3 axis: 0 weight_filler { type: 'xavier' } } }\n"
      "layer { name: 'loss' type: 'Reduction' bottom: 'd' top: 'loss' loss_weight: 1"
      " reduction_param { operation: SUMSQ } }\n";
  Running alone(net);
  for (int i = 0; i < 3; ++i) alone.step(1e-3f);
  ScratchFolder folder;
  write_file_atomically(folder.file("s.json"), R"({"format": "cortado-strategy", "version": 1, "ranks": 2,
      "layers": {"c": {"n": 2}, "sum": {"c": 2}, "d": {"c": 2}, "loss": {}}})");
  for (const std::string strategy :
       {"data", "model", "spatial", "random:1", "random:2", "random:4", "random:5"}) {
    SCOPED_TRACE(strategy);
    expect_trains_the_same(net, alone, strategy, {"c/weight", "c/bias", "d/weight"});
  }
  expect_trains_the_same(net, alone, folder.file("s.json"), {"c/weight", "c/bias"});
}

// A Parameter that Bias reads trains as the parameter that Bias has itself, on any ranks.
TEST(CaffeNets, AParameterIsReadAsATensor) {
  const auto net = [](const std::string& bias) {
    return input("shape { dim: 4 dim: 3 dim: 5 } shape { dim: 4 dim: 2 }", "top: 'x' top: 'y'") + bias +
           "layer { name: 'ip' type: 'InnerProduct' bottom: 'b' top: 'ip' inner_product_param { num_output: "
           "2 "
           "weight_filler { type: 'xavier' } } }\n"
           "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' }\n";
  };
  const std::string tensor =
      net("layer { name: 'p' type: 'Parameter' top: 'p' parameter_param { shape { dim: 3 dim: 5 } } }\n"
          "layer { name: 'b' type: 'Bias' bottom: 'x' bottom: 'p' top: 'b' }\n");
  Running alone(tensor);
  Running own(net("layer { name: 'b' type: 'Bias' bottom: 'x' top: 'b' bias_param { num_axes: 2 } }\n"));
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(alone.step(1e-2f), own.step(1e-2f), 1e-4) << i;
  expect_near(alone.parameter("p/weight"), own.parameter("b/bias"));
  EXPECT_NE(alone.parameter("p/weight"), std::vector<float>(15));
  Running again(tensor);
  for (int i = 0; i < 3; ++i) again.step(1e-3f);
  for (const std::string strategy : {"data", "model", "random:1", "random:2"}) {
    SCOPED_TRACE(strategy);
    expect_trains_the_same(tensor, again, strategy, {"p/weight", "ip/weight"});
  }
}

// Layers of one name have each their own random numbers.
TEST(CaffeNets, DropoutsOfOneNameDropOtherElements) {
  const std::string drop = "layer { name: 'drop' type: 'Dropout' bottom: 'x' top: ";
  Running run(input("shape { dim: 4 dim: 50 }", "top: 'x'") + drop + "'a' }\n" + drop + "'b' }\n");
  run.loss();
  EXPECT_NE(run.tensor("a"), run.tensor("b"));
}

// Caffe multiplies 0 by infinity while it trains; here nothing passes, as in PyTorch.
TEST(CaffeNets, ADropoutOfRatioOneIsTheIdentityInTests) {
  const std::string text = input("shape { dim: 4 dim: 5 }", "top: 'x'") +
                           "layer { name: 'p' type: 'Scale' bottom: 'x' top: 'p' }\n"
                           "layer { name: 'd' type: 'Dropout' bottom: 'p' top: 'd'"
                           " dropout_param { dropout_ratio: 1 } }\n"
                           "layer { name: 's' type: 'Reduction' bottom: 'd' top: 's' loss_weight: 1 }\n";
  Running test(text, nullptr, "single", Phase::test);
  test.loss();
  EXPECT_EQ(test.tensor("d"), test.tensor("x"));
  Running train(text);
  train.loss();
  EXPECT_EQ(train.tensor("d"), std::vector<float>(20));
  const std::vector<float> gradient = train.first_gradient();
  EXPECT_EQ(std::vector<float>(gradient.begin(), gradient.begin() + 5), std::vector<float>(5));
}

}  // namespace
}  // namespace cortado
